"""A whole cluster in one process: an API server, the controllers that stories need, and simulated nodes.

It is the stage for tests, scenarios and demonstrations; nothing but `cli` imports it."""
