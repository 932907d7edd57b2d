"""Defaulting of objects, as the API server's versioned defaults do."""
