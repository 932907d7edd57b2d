"""Plain reports that say what the one before said, but for what is free.

Nodes report over and over, and all but amounts stays the same. `mirror` asks here first, with the facts that it has:
what a report repeats is compared and not worked out again. The facts that come out equal those of `ingest.read`;
None: something else changed, and `ingest` has to read it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec import structs

from numalign.api import fingerprint, resourcenames
from numalign.api.nodetopology import Amounts, NodeTopology
from numalign.placement import ingest, nodesettings, supplies
from numalign.placement.rowfacts import Assumption, RowFacts, Stock, Supplies


def read(topology: NodeTopology, before: RowFacts) -> RowFacts | None:
    """`before`: the facts of a plain report on the same node, or on one whose Node says the same."""
    stock, amounts = before.supplies.stock, _amounts(topology, before)
    if amounts is None or not _is_same(stock, before, amounts):
        return None
    free = _whole([each.available for each in amounts], stock.names)
    signature = topology.fingerprint
    rules = before.rules
    managed = rules.static_memory
    groups = ingest.supposed_groups(rules.policy, len(rules.zones), _busy(free, stock)) if managed else None
    return structs.replace(
        before,
        node=sys.intern(topology.node),
        supplies=Supplies(stock, free),
        groups=groups,
        payload=ingest.payload(topology),
        fingerprint=signature.text if signature else "",
        exclusive_only=signature is not None and signature.method is fingerprint.Method.EXCLUSIVE,
        assumptions=_assumptions(before, unknown=managed and groups is None),
    )


def _amounts(topology: NodeTopology, before: RowFacts) -> list[Amounts] | None:
    """What the report says of every resource; None if zones, settings or resources are others."""
    rules, zones, names = before.rules, topology.zones, before.supplies.stock.names
    manager, assumed = topology.manager, Assumption.POLICY_FROM_KUBELET_DEFAULT in before.assumptions
    if (manager.policy, manager.scope) != (rules.policy, rules.scope) or assumed != nodesettings.is_assumed(topology):
        return None
    if not names or tuple([zone.id for zone in zones]) != rules.zones:
        return None
    tables = [zone.resources for zone in zones]
    # Mostly every zone has all of them.
    if tuple(chain.from_iterable(tables)) == names * len(tables):
        return list(chain.from_iterable([table.values() for table in tables]))
    if not _are_named(tables, names):
        return None
    return [table.get(name, supplies.NOTHING) for table in tables for name in names]


def _are_named(tables: Sequence[Mapping[str, Amounts]], names: tuple[str, ...]) -> bool:
    """Whether `ingest` would have these names of resources, in this order."""
    first = tuple(tables[0])
    return first == names[: len(first)] and {resourcenames.CPU}.union(*tables) == set(names)


def _is_same(stock: Stock, before: RowFacts, amounts: Sequence[Amounts]) -> bool:
    """Whether there is just as much of everything."""
    sizes, tops, width = [each.capacity for each in amounts], [each.allocatable for each in amounts], len(stock.names)
    if any(tops[stock.names.index(resourcenames.CPU) :: width]) is not before.rules.static_cpus:
        return False
    for place in supplies.memory_places(stock.names):
        sizes[place::width] = tops[place::width]
    return _whole(tops, stock.names) == stock.allocatable and _whole(sizes, stock.names) == stock.size


def _whole(amounts: list[int], names: tuple[str, ...]) -> tuple[int, ...]:
    """With CPUs in whole ones."""
    cpus = slice(names.index(resourcenames.CPU), None, len(names))
    amounts[cpus] = [amount // supplies.MILLI for amount in amounts[cpus]]
    return tuple(amounts)


def _busy(free: Sequence[int], stock: Stock) -> int:
    """The zones of which some memory is in use."""
    busy, width = 0, len(stock.names)
    for place in supplies.memory_places(stock.names):
        for position, spot in enumerate(range(place, len(free), width)):
            if free[spot] < stock.allocatable[spot]:
                busy |= 1 << position
    return busy


def _assumptions(before: RowFacts, *, unknown: bool) -> frozenset[Assumption]:
    if unknown == (Assumption.GROUPS_UNKNOWN in before.assumptions):
        return before.assumptions
    return ingest.shared_assumptions(before.assumptions ^ {Assumption.GROUPS_UNKNOWN})
