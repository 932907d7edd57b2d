"""Decoding: strict structs, quantities, YAML, merge patches and protobuf."""
