"""The flight recorder: what the scheduler writes down while it runs, and the files that it writes."""
