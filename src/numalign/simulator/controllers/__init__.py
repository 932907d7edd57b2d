"""The controllers of the embedded cluster.

Each is a pure function from what is observed to a list of actions; `runner` performs the actions over the API."""
