"""Enforces the decisions of direct mode on the containers of the node, as a plugin of the container runtime."""
