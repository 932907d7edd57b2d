"""The typed objects that everything else speaks in: quantities, pods, nodes, topology reports, errors.

The lowest room: it imports nothing else of ours, and does no I/O. What arrives as JSON or YAML becomes a struct here
or is refused with an error that names the object and the field."""
