"""Generators of test input, shared by property tests and campaigns."""
