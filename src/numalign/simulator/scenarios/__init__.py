"""Scenarios: a cluster, a load, faults and what has to hold, written as YAML and played in virtual time.

`scenariofile` reads one, `catalogue` knows those that ship with numalign, `playing` plays it on the embedded cluster
and gives back a `history`, and `judging` tells from the history alone what held."""
