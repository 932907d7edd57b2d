"""Scenarios: a cluster, a load, faults and expectations in a YAML file, played in virtual time.

`scenariofile` reads a file, `catalogue` has the scenarios that ship with numalign, `play` plays one on the embedded
cluster and returns a `history`, and `judge` checks the history against the expectations."""
