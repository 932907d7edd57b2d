"""Compares numalign's rules with the plugins of kube-scheduler's default profile, on generated clusters and pods."""
