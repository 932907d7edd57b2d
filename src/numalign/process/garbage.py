"""Garbage collection in a process that keeps much for long: what has settled is not looked at again.

A process calls `settle` once it knows its world. What is there by then (modules, compiled code, thousands of nodes and
pods) would otherwise be walked through every time that Python looks for cycles."""

from __future__ import annotations

import gc


def settle() -> None:
    """Everything there is now counts as permanent; cycles that are made later are found as ever."""
    gc.collect()
    gc.freeze()
