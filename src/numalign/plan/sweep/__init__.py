"""Many what-if questions at once: a grid of changes, times seeds, in several processes, and resumable."""
