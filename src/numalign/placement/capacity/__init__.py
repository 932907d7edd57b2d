"""How many more pods of a shape each node admits, and whether a list of pods finds room as a whole.

The scheduler's HTTP server, the autoscaler bridges and `numalign capacity` call `count.count`, `reasons` and
`gang.fitting`. Nothing is charged: ledger and columns stay as they are. The planner calls `contenders` and
`waste`, which compare what other schedulers would choose and what stays free."""
