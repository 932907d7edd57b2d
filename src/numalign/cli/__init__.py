"""The command line: one module per command group; each parses, calls a lower package and prints.

`main` puts the groups together. Nothing below imports this package."""
