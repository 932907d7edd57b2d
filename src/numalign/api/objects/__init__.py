"""Typed Kubernetes objects: pods, nodes and what they refer to."""
