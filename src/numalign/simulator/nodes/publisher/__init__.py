"""The simulated publisher of NodeResourceTopology objects."""
