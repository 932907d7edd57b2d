"""The types that all other rooms use: quantities, pods, nodes, topology reports, errors.

The lowest room: it imports no other room and does no I/O. JSON and YAML become structs here, or are refused with an
error that names the object and the field."""
