"""The four ways to patch an object, as functions of trees: no store, no clock, no request.

`jsonpatch`, `strategic` and `api.mergepatch` change a tree; `apply` merges what a manager wants and keeps the books of
who owns which field."""

from numalign.simulator.apiserver.patches.errors import ApplyConflict, BadPatch

__all__ = ["ApplyConflict", "BadPatch"]
