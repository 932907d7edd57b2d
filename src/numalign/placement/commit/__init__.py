"""Places one pod on one chosen node, with the model that decides exactly there."""
