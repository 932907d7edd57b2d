"""Where the planner has a cluster or machines from: catalogues, recordings, traces; live clusters and dumps are read by
`scheduler.snapshot`.

Each gives a `Snapshot`, or nodes to put into one, so that every question is asked of one form."""
