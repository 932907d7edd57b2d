"""Brings any list of rendered objects into a cluster, keeps it there, and takes it out again.

`applying` makes objects what they should be and prunes what left the set, `removing` deletes them, `waiting` waits for
them and says how they are. Each takes a `Server` and plain objects; only the command line calls them.
`objects`, `differences`, `ownership` and `readiness` decide and do no I/O."""
