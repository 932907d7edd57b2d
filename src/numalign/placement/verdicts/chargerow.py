"""Charges a pod to a row of the columns: every container in one zone that has room, nothing left open.

`exact` calls it for rows that a kernel found to fit; all other cases go through the row model and the ledger.
What pods of one shape take is worked out once (`spots`). A row charged here has the same numbers as one that is read
from the ledger afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from numalign.placement.columns.resources import CPU
from numalign.placement.kernels.plan import SINGLE, ZONES

if TYPE_CHECKING:
    from numalign.placement.columns.columns import Flat
    from numalign.placement.kernels.plan import Plan

NOT_SIMPLE: Final = -1
NO_MASK: Final = 0xFF
"""Stands for the zones of every container where a row fits by more than a kernel's word."""


class Spots(Struct, frozen=True):
    """The charges of a pod whose zones are settled: the same for all its equals on nodes of a kind."""

    amounts: tuple[tuple[int, int], ...]
    """Where in a row of `columns.Flat`, and how much."""
    cpus: int
    pinned: tuple[int, ...]
    """Zones in which it has memory."""
    devices: tuple[int, ...]
    """Columns."""


def spots(plan: Plan, masks: Sequence[int], width: int) -> Spots | None:
    """Where there are so many columns. None: some container may be in several zones."""
    found = [0] * (plan.places * ZONES)
    pinned = settle(plan, masks, found)
    if pinned == NOT_SIMPLE:
        return None
    each = ((at % ZONES * width + plan.columns[at // ZONES], amount) for at, amount in enumerate(found) if amount)
    items = {item for step in range(plan.steps) for item in range(plan.devices[step], plan.memory[step + 1])}
    return Spots(
        amounts=tuple(each),
        cpus=sum(found[:ZONES]),
        pinned=tuple(zone for zone in range(plan.zones) if pinned >> zone & 1),
        devices=tuple({plan.columns[plan.places_asked[item]] for item in items}),
    )


def takes(flat: Flat, row: int, taken: Spots) -> bool:
    """Whether the row has room, and all of its devices lie in zones."""
    free, first = flat.free, row * flat.span
    for at, amount in taken.amounts:
        if amount > free[first + at]:
            return False
    homeless, first = flat.homeless_size, flat.stock[row] * flat.width
    for column in taken.devices:
        if homeless[first + column]:
            return False
    cells, first = flat.cells, row * flat.zones
    for zone in taken.pinned:  # noqa: SIM110 (a generator takes longer)
        if cells[first + zone] != 1 << zone:
            return False
    return True


def take(flat: Flat, row: int, taken: Spots, plan: Plan) -> None:
    """Take these amounts off the row."""
    free, first = flat.free, row * flat.span
    if taken.cpus:
        # CPUs beside a reserved one are free without being on a full core; they may be the ones taken.
        full, there = flat.full_core_cpus[row], sum(free[first + CPU : first + plan.zones * flat.width : flat.width])
        flat.full_core_cpus[row] = full - taken.cpus if full == there else -1
        if plan.threads > 1 and plan.full_cores == 0:
            flat.split_known[row] = False
    for at, amount in taken.amounts:
        free[first + at] -= amount
    if plan.policy != SINGLE:
        for zone in taken.pinned:
            flat.busy[row] |= 1 << zone


def settle(plan: Plan, masks: Sequence[int], found: list[int]) -> int:
    """The pod's amounts by place and zone, into `found`; the zones in which it pins memory, or `NOT_SIMPLE`."""
    if plan.plain == 0:
        return NOT_SIMPLE
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
            found[plan.places_asked[item] * ZONES + zone] += plan.amounts[item]
    return pinned


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
