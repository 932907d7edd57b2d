"""The scheduler's HTTP pages and who may read them."""
