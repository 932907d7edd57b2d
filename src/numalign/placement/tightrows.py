"""Charging a pod to a tight row of the columns: every container in one zone that has room, nothing left open.

`exactflavour` and the compiled loop of `repeating` call these for rows that a kernel found to fit; all other cases go
through the row model and the ledger. Written in the part of Python that numba compiles, like the row kernels: plain
loops over numbers. A row charged here has the same numbers as one that is read from the ledger afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numalign.placement.kernels.plans import MOST_PLACES, SINGLE, ZONES
from numalign.placement.resources import CPU

if TYPE_CHECKING:
    from numalign.placement.kernels.plans import Plan

NOT_SIMPLE: Final = -1
NO_MASK: Final = 0xFF
"""Stands for the zones of every container where a row fits by more than a kernel's word."""
Charges = NDArray[np.int64]
"""Amount of place p in zone z at 8p + z."""


class Cells(NamedTuple):
    """The columns that a charge looks at or changes."""

    free: Any
    homeless_size: Any
    cells: Any
    busy: Any
    full_core_cpus: Any
    split_known: Any


def charges() -> Charges:
    return np.zeros(MOST_PLACES * ZONES, np.int64)


def gather(plan: Plan, cells: Cells, row: int, masks: Any, found: Charges) -> int:
    """The pod's amounts by place and zone, into `found`; the zones in which it pins memory, or `NOT_SIMPLE`."""
    if plan.plain == 0:
        return NOT_SIMPLE
    for at in range(plan.places * ZONES):
        found[at] = 0
    pinned = 0
    for step in range(plan.steps):
        first, devices, last = plan.memory[step], plan.devices[step], plan.memory[step + 1]
        if plan.cpus[step] == 0 and first == last:
            continue
        zone = lone_zone(plan, masks[step])
        if zone < 0:
            return NOT_SIMPLE
        found[zone] += plan.cpus[step]
        if first < devices:
            pinned |= 1 << zone
        for item in range(first, last):
            place = plan.places_asked[item]
            found[place * ZONES + zone] += plan.amounts[item]
            if item >= devices and cells.homeless_size[row, plan.columns[place]] != 0:
                return NOT_SIMPLE
    return pinned if has_room(plan, cells, row, pinned, found) else NOT_SIMPLE


def lone_zone(plan: Plan, mask: int) -> int:
    """The only zone that the container can be in; -1: there are several."""
    if plan.zones == 1:
        return 0 if mask <= 1 else -1
    if mask == 0 or mask & (mask - 1) != 0:
        return -1
    zone = 0
    while mask >> zone != 1:
        zone += 1
    return zone


def has_room(plan: Plan, cells: Cells, row: int, pinned: int, found: Charges) -> bool:
    for place in range(plan.places):
        for zone in range(plan.zones):
            amount = found[place * ZONES + zone]
            if amount > 0 and amount > cells.free[row, zone, plan.columns[place]]:
                return False
    in_groups = 0
    for zone in range(plan.zones):
        if cells.cells[row, zone] != 1 << zone:
            in_groups |= 1 << zone
    return pinned & in_groups == 0


def holds_anything(plan: Plan, found: Charges) -> bool:
    total = 0
    for at in range(plan.places * ZONES):
        total |= found[at]
    return total > 0


def charge(plan: Plan, cells: Cells, row: int, pinned: int, found: Charges) -> None:
    """Take what `gather` found off the row."""
    cpus, free = 0, 0
    for zone in range(plan.zones):
        cpus += found[zone]
        free += cells.free[row, zone, CPU]
    if cpus > 0:
        full = cells.full_core_cpus[row]
        # CPUs beside a reserved one are free without being on a full core; they may be the ones taken.
        cells.full_core_cpus[row] = full - cpus if full == free else -1
        if plan.threads > 1 and plan.full_cores == 0:
            cells.split_known[row] = False
    for place in range(plan.places):
        for zone in range(plan.zones):
            if found[place * ZONES + zone] > 0:
                cells.free[row, zone, plan.columns[place]] -= found[place * ZONES + zone]
    if plan.policy != SINGLE:
        cells.busy[row] |= pinned
