"""Filters and scores of kube-scheduler that look at volumes and claims."""
