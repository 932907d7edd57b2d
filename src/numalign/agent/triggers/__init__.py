"""Decides when the agent reads the node again."""
