"""Which pod holds what in which zone, observed or predicted. The engine's flavour is the only writer."""
