"""Generators of cases for kube-scheduler."""
