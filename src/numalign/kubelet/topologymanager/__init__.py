"""The Topology Manager: hints, their merge, and its policies."""
