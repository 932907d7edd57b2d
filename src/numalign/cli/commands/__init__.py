"""Command groups: one module per group parses the arguments, calls and prints.

`main` registers them. They import what they call when they run, so that help and completion stay fast."""
