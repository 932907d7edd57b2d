"""Generates cases for the kubelet's managers."""
