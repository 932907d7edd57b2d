"""Suites of recorded cases of the scheduler plugin, one module per part of it."""
