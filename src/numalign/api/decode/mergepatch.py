"""JSON merge patch (RFC 7386): a tree laid over a tree, where null takes away.

The embedded API server patches objects with it, and the agent merges a kubelet's drop-in files as the kubelet does.
Neither argument is changed."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]


def applied(tree: Tree, patch: Tree) -> Tree:
    merged = dict(tree)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _value(merged.get(key), value)
    return merged


def _value(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    return applied(old if isinstance(old, dict) else {}, new)
