"""Stored objects, their versions, the watch history and the registry of resources."""
