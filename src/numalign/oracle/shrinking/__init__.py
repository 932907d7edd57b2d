"""Shrinks cases: where their parts are, what can be removed, what must be removed with it, what must stay valid."""
