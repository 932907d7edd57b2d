"""The four patch types, as functions of trees without store, clock or request.

`jsonpatch`, `strategic` and the merge patch of `api` change a tree; `apply` implements server-side apply. The patch and
update verbs call them."""

from numalign.simulator.apiserver.patches.errors import ApplyConflict, BadPatch

__all__ = ["ApplyConflict", "BadPatch"]
