"""JSON merge patch among the API server's patches; the rule itself is `api.mergepatch`."""

from numalign.api.mergepatch import applied

__all__ = ["applied"]
