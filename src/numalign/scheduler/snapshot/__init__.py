"""Dumps of the scheduler's state: collected, written, read and restored."""
