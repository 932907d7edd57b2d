"""Compares numalign's reference flavour with the real NodeResourceTopologyMatch plugin, v0.34.7.

`sources` passes its judge to campaigns. Histories are replayed on the reference flavour and compared step by step."""
