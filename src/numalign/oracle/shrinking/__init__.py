"""What `shrink` knows about cases: where their parts are, what can go, what goes with it, and what has to stay true."""
