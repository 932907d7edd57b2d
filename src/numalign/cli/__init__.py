"""The command line: one module per command group; each parses, calls a lower room and prints.

`main` puts the groups together. Nothing below imports this room."""
