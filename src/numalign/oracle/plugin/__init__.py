"""Our reference flavour beside the real NodeResourceTopologyMatch."""
