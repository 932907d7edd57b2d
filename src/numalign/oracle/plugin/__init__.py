"""Compares numalign's reference flavour with the real NodeResourceTopologyMatch plugin, v0.34.7.

`suites` holds recorded cases of its parts. Generated histories are replayed on the reference flavour and compared step
by step."""
