"""Leader election by leases."""
