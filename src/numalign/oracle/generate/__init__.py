"""Generators of cases for the kubelet's managers and the scheduler plugin."""
