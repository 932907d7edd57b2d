"""Simulated nodes: a kubelet each, built on the exact model, and whoever publishes the node's topology report.

`fleet` is the way in: it holds all nodes of a cluster, listens to the API server once for all of them, and lets one
agenda move them. docs/compatibility/embedded-nodes.md names what is simpler here than on a real node."""
