"""The embedded cluster: an API server, controllers, a scheduler and simulated nodes in one process.

Tests, scenarios, the demo and `numalign cluster` use it. The agent and the scheduler never import it."""
