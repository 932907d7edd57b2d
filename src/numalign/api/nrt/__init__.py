"""NodeResourceTopology: the wire form, the normalised form, fingerprints and placements."""
