"""The Memory Manager: its tables by zone (`state`) and the static policy."""
