"""Reads recordings: the cluster as it was, and its decisions once more."""
