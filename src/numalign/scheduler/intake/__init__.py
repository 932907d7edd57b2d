"""Turns watch events into facts for the engine and entries of the queue."""
