"""Generators of cases for the publishers."""
