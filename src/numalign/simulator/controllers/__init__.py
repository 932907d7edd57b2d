"""Controllers of the embedded cluster.

Each controller reads objects and returns a list of actions; `framework.runner` performs the actions through the API.
`manager` starts all controllers. `workloads` and `cluster` hold the controllers, and use `framework`."""
