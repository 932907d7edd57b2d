"""The engine's room: which node a pod goes to and why, computed from facts that others bring.

`reference` holds the decisions of the Go plugin NodeResourceTopologyMatch. Nothing here does I/O, reads a clock or
draws random numbers: time and randomness are arguments."""
