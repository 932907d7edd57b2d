"""The memory manager: its per-zone tables (`state`), the static policy, and what it accepts at start."""
