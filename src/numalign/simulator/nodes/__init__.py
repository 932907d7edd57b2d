"""Simulated nodes: each has a kubelet based on the exact model, and a publisher of its NodeResourceTopology.

`fleet` holds all nodes of a cluster. It watches the API server once for all of them and runs their timers.
docs/compatibility/embedded-nodes.md lists what is simpler than on a real node."""
