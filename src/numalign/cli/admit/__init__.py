"""What `numalign kubelet admit` reads and prints."""
