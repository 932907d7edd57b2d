"""Events, messages and the history of each pod."""
