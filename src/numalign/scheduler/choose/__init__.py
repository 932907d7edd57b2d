"""Chooses a node for one pod: filters, scores and the rank cache."""
