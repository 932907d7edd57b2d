"""Defaulting of built-in kinds, and the default admission plugins: namespaces, priority, service accounts, storage.

`kinds.prepare` is the entry point; `admission` exports it."""
