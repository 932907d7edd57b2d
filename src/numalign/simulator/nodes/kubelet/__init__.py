"""The simulated kubelet: admission, pod lifecycle and status."""
