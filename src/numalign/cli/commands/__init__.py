"""One module per command group: parses the arguments, calls, prints."""
