"""One row while a plan is evaluated on it: what is free now, and scratch space.

The row kernels (`hints`, `merge`, `cpupicking`, `allocate`, `scoring`, `singlezone`, `admit`) are written in the part
of Python that numba compiles: loops over numbers, no objects but `Plan` and `Work`. `scalar` runs them on lists,
`compiled` compiles the same functions and runs them on records.

What a plain init container got stays in `free`, as its pod may take it again; `kept` says in which zones, `kept_low`
and `kept_high` bound how much of it there is (engine spec R4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.placement.kernels.plan import MASKS, MOST_PLACES, MOST_STEPS, ZONES

LENGTHS: Final[Mapping[str, int]] = {
    "free": MOST_PLACES * ZONES,
    "size": MOST_PLACES * ZONES,
    "allocatable": MOST_PLACES * ZONES,
    "domains": MOST_PLACES,
    "homeless": MOST_PLACES,
    "homeless_size": MOST_PLACES,
    "unknown": MOST_PLACES,
    "kept": MOST_PLACES,
    "kept_low": MOST_PLACES,
    "kept_high": MOST_PLACES,
    "cells": ZONES,
    "slot_masks": MOST_STEPS,
    "slot_amounts": MOST_STEPS * MOST_PLACES,
    "list_places": MOST_PLACES,
    "list_needs": MOST_PLACES,
    "list_domains": MOST_PLACES,
    "list_slacks": MOST_PLACES,
    "zones": ZONES,
    "choices": ZONES + 1,
    "members": MASKS,
    "sums": MASKS,
    "masks": MOST_STEPS,
    "before": MOST_PLACES * ZONES,
}
"""Tables; every other field is a number."""


class Work:
    """`free`, `size`, `allocatable`: amount of place p in zone z at 8p + z."""

    free: list[int]
    size: list[int]
    allocatable: list[int]
    domains: list[int]
    """By place: the zones that have any of it at all, free or not."""
    homeless: list[int]
    homeless_size: list[int]
    unknown: list[int]
    """By place: whether counts no longer tell in which zones it is free."""
    kept: list[int]
    kept_low: list[int]
    kept_high: list[int]
    cells: list[int]
    busy: int
    slots: int
    slot_masks: list[int]
    """Memory that plain init containers hand on, under exactly this mask (kubelet spec 6.5)."""
    slot_amounts: list[int]
    """By slot and place."""
    full_core_cpus: int
    lone_cpus: int
    """Free CPUs on cores with a reserved one."""
    least_taken: int
    most_taken: int
    """Bounds of how many CPUs left the shared set since."""
    whole_cores: int
    overstated: int
    """Whether CPUs may have been counted that were not free: there may be more left than the table says."""
    lists: int
    unsatisfiable: int
    """Whether some resource does not suffice in all zones together."""
    memory_types: int
    list_places: list[int]
    list_needs: list[int]
    list_domains: list[int]
    list_slacks: list[int]
    zones: list[int]
    choices: list[int]
    members: list[int]
    """By mask: whether the memory manager would come to it."""
    sums: list[int]
    masks: list[int]
    """The result, by step."""
    before: list[int]
    """Of `counting`: `free` before the last pod, whether or not that one was admitted."""

    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, [0] * LENGTHS[name] if name in LENGTHS else 0)
