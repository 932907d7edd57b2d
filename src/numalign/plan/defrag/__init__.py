"""Defragmentation: which pods to move, in which order, so that pods fit, zones become free or a node becomes empty.

`numalign plan defrag` calls `planner`. Nothing is evicted here, and nothing is charged outside of copies."""
