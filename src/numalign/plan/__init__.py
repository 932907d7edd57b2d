"""The planner: replays of recorded workloads, which show how well policies pack and what kubelets would reject.

`numalign plan` calls `replay`. What decides is pure: files are read by `trace`, seeds and clocks are arguments."""
