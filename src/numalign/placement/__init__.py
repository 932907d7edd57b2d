"""The engine: decides which nodes fit a pod and which zones it gets, from facts that the scheduler applies.

`reference` holds the decisions of the Go plugin NodeResourceTopologyMatch. Nothing here does I/O, reads a clock or
draws random numbers: time and randomness are arguments."""
