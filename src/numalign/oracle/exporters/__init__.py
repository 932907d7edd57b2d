"""Compares the agent's modes `rte` and `nfd` with the real topology publishers: generated rows, their judge and
shrinker."""
