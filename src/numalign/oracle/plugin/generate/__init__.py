"""Generates histories for the scheduler plugin."""
