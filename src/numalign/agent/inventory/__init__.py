"""Combines the sources into one inventory of zones, allocatable amounts and allocations."""
