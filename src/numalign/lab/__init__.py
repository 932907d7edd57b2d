"""Real Kubernetes components on this machine: pinned builds, and clusters of real kubelets on simulated hardware.

`numalign lab`, the oracles, tests and benchmarks use it. Nothing here is part of the product."""
