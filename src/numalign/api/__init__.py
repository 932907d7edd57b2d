"""The types that all other packages use: quantities, pods, nodes, topology reports, errors.

The lowest package: it imports no other package and does no I/O. JSON and YAML become structs here, or are refused with
an error that names the object and the field."""
