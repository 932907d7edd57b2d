"""Reads the node: podresources, kubelet configuration, checkpoints and sysfs."""
