"""Writes the NodeResourceTopology object, in our form or as RTE or NFD write it."""
