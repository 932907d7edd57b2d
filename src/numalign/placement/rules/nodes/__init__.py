"""Filters and scores of kube-scheduler that look at the Node object."""
