"""The scheduling process: pods that wait, the cycle that places them, and what is written about it.

`queue` decides who is next and who waits for what; it is pure, with time as an argument. What may wake a waiting pod is
a table in `wakeups`, with the questions it asks in `hints`."""
