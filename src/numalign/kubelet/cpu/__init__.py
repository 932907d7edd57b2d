"""The CPU manager: its view of the machine (`topology`), its options, its two pickers and the static policy."""
