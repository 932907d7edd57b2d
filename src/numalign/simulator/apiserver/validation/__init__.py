"""Validation of built-in kinds, with the API server's messages.

`kinds.errors` is the entry point; `admission` exports it."""
