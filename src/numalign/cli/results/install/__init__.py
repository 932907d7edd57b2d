"""Draws what the commands that install numalign print."""
