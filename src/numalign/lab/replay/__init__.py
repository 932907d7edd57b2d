"""A recorded workload on real kubelets: whether they do what the planner says.

`numalign lab replay` calls `run`."""
