"""Filters and scores of kube-scheduler that look at node totals."""
