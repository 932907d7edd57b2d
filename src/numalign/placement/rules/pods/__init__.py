"""Filters and scores of kube-scheduler that look at other pods."""
