"""What pods hold where nobody saw it: bounds from the spec alone.

The ledger asks `anywhere` for a pod that was on the node before anything was known of it, and `hidden` for what plain
init containers leave behind: the pod resources API does not list them, yet their CPUs and devices stay assigned until
the pod ends, and their memory until a later container starts (engine spec R3). Later containers may use what an init
container got, so the sum lies between the larger of the two and both together (engine spec R4)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from msgspec import Struct

from numalign.kubelet.demand import Role
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.ledger.holdings import Entry
from numalign.placement.reports.nodefacts import RowFacts


class Bounds(Struct):
    """Of one resource: what lasting containers hold, and what init containers get, in sum and at most at once."""

    lasting: int = 0
    init: int = 0
    largest_init: int = 0


def anywhere(program: Program, facts: RowFacts, resources: Resources) -> tuple[Entry, ...]:
    """Everything that a pod of this program may hold, somewhere on the node."""
    found: list[Entry] = []
    for column, bounds in sorted(_bounds(program).items()):
        zones, sure = _reach(resources.names[column], facts)
        if zones is None:
            continue
        least = max(bounds.lasting, bounds.largest_init)
        found += _between(column, zones, least if sure else 0, bounds.lasting + bounds.init)
    return tuple(found)


def hidden(program: Program, zones: int, facts: RowFacts, resources: Resources, *, memory: bool) -> tuple[Entry, ...]:
    """What a report does not show of a pod that it covers, in these zones; `memory`: no later container has started."""
    found: list[Entry] = []
    for column, bounds in sorted(_bounds(program).items()):
        name = resources.names[column]
        reach, _ = _reach(name, facts)
        gone = not memory and column in _memory_columns(program)
        if not bounds.init or name in facts.from_books or gone or not reach:
            continue
        within = reach & zones or reach
        found += _between(column, within, max(0, bounds.largest_init - bounds.lasting), bounds.init)
    return tuple(found)


def _between(column: int, zones: int, least: int, most: int) -> Iterator[Entry]:
    if least:
        yield Entry(column, least, zones)
    if most > least:
        yield Entry(column, most - least, zones, certain=False)


def _bounds(program: Program) -> dict[int, Bounds]:
    found: defaultdict[int, Bounds] = defaultdict(Bounds)
    for step in program.steps:
        # Pod-level resources are one allocation, and what containers use of them comes out of it.
        for column, amount in _asked(step.ask, devices_only=program.budget is not None).items():
            bounds = found[column]
            if step.role is Role.INIT:
                bounds.init += amount
                bounds.largest_init = max(bounds.largest_init, amount)
            else:
                bounds.lasting += amount
    if program.budget is not None:
        for column, amount in _asked(program.budget, devices_only=False).items():
            found[column].lasting += amount
    return found


def _asked(ask: Ask, *, devices_only: bool) -> Counter[int]:
    amounts: Counter[int] = Counter(dict(ask.devices))
    if not devices_only:
        amounts.update(dict(ask.memory or ()))
        amounts[CPU] += ask.cpus
    return +amounts


def _memory_columns(program: Program) -> frozenset[int]:
    return frozenset(column for step in program.steps for column, _ in step.ask.memory or ())


def _reach(name: str, facts: RowFacts) -> tuple[int | None, bool]:
    """The zones that have any of the resource, and whether it surely lies in zones; None: the node has none at all."""
    supply = facts.supplies.get(name)
    if supply is None:
        return None, False
    zones = sum(1 << position for position, size in enumerate(supply.size) if size)
    for each in facts.classes:
        zones |= each.zones if each.resource == name else 0
    if not zones and not supply.homeless_size:
        return None, False
    return zones, not zones or not supply.homeless_size
