"""The simulated publishers of NodeResourceTopology objects: our agent, RTE and NFD."""
