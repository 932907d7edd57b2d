"""The CPU Manager: its view of the machine (`topology`), its CPU assignment, its state and the static policy."""
