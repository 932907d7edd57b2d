"""Compares the agent's modes `rte` and `nfd` with the real topology publishers: RTE v0.24.0 and NFD v0.19.0.

Recorded and generated cases are rows of tables, one table per suite."""
