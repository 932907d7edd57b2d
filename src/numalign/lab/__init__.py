"""Real components on this machine: their pinned builds, and (later) clusters of real kubelets on made-up hardware."""
