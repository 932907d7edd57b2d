"""Our scheduler's rules beside the real kube-scheduler."""
