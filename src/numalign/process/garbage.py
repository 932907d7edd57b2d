"""Garbage collection in a process that keeps much for long: what has settled is not looked at again.

A process calls `settle` once it knows its world. What is there by then (modules, compiled code, thousands of nodes and
pods) would otherwise be walked through every time that Python looks for cycles. Of what comes later hardly anything is
part of a cycle, so that it looks more rarely: a burst of pods that stay would have it look thirty times a second."""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 10_000
"""Allocations between two collections of the youngest generation; Python's default is 700."""


def settle() -> None:
    """Freezes all objects that exist now; later cycles are still collected."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG)
