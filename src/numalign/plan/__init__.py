"""The planner: questions about clusters that are not, or not yet, there, answered by the scheduler's own code.

`numalign plan` calls it. `sources` give a snapshot, `questions` and `sweep` ask what fits and what would be different,
`defrag` which pods have to move. `replay` shows how well policies pack a recorded workload and what kubelets would
reject, by `onezone` and `zoned`. What decides is pure: files are read by `trace`, seeds and clocks are arguments."""
