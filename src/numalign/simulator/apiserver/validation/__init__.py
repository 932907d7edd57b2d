"""Validation of objects, with the API server's messages."""
