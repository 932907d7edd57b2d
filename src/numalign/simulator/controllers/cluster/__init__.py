"""Controllers of nodes, namespaces, service accounts, claims and garbage collection."""
