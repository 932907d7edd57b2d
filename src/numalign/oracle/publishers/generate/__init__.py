"""Generates nodes, texts and small lists for the publishers' tables."""
