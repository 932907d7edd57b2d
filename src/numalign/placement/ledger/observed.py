"""What a report says of one pod, compared with what was predicted.

`reconcile` calls `read` for every pod that our agent lists, and `contradictions` where it had a prediction. CPU ids
become counts by zone; without the node's core map only their sum is known. An observation replaces any prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct

from numalign.api.attributes.podplacements import HeldDevices, PodPlacement
from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.ledger.divergences import Divergence, DivergenceKind

Where = tuple[int, int]
"""Column and zones."""
MOST_KNOWN: Final = 8192


class Observation(Struct, frozen=True):
    """A pod's entries and the zones that each of its containers touches, by position."""

    entries: tuple[Entry, ...]
    containers: tuple[ContainerZones, ...]


def read(placement: PodPlacement, facts: RowFacts, resources: Resources, *, reuses: bool = False) -> Observation:
    """What a placement shows of a pod. `reuses`: later containers may hold CPUs and devices of init containers."""
    zones, column_of, from_ids, cpus = facts.rules.zones, resources.column, zonesets.from_ids, 0
    amounts: dict[Where, int] = {}
    inside: list[tuple[Where, int]] = []
    devices: dict[Where, tuple[HeldDevices, ...]] = {}
    containers = []
    for held in placement.holdings:
        cpus |= held.cpus
        inside, mask = _cpus(held.cpus, facts), 0
        for (_, where), _ in inside:
            mask |= where
        for block in held.memory:
            # Memory in zones that the node does not report cannot be charged to any.
            where = from_ids(block.zones, zones)
            if where and block.size > 0:
                mask |= where
                spot = column_of(block.type), where
                amounts[spot] = amounts.get(spot, 0) + block.size
        for each in held.devices:
            where = from_ids(each.zones, zones) if each.zones else 0
            mask |= where if each.ids or each.count > 0 else 0
            spot = column_of(each.resource), where
            devices[spot] = (*devices[spot], each) if spot in devices else (each,)
        containers.append(ContainerZones(held.container, (mask,) if mask else ()))
    maybe: dict[Where, int] = {}
    # Containers may hold the same CPUs one after the other.
    for spot, amount in _cpus(cpus, facts) if len(containers) > 1 else inside:
        amounts[spot] = amounts.get(spot, 0) + amount
    for spot, alike in devices.items():
        least, most = _numbers(alike)
        amounts[spot] = amounts.get(spot, 0) + (least if reuses else most)
        if reuses and most > least:
            maybe[spot] = most - least
    entries = _entries(frozenset(amounts.items()), resources.memory)
    if maybe:
        entries += tuple([Entry(column, amount, at, certain=False) for (column, at), amount in sorted(maybe.items())])
    return Observation(entries, tuple(containers))


def contradictions(predicted: Holding, seen: Observation, facts: RowFacts, resources: Resources) -> list[Divergence]:
    """The parts of the prediction that the observation contradicts; empty if it is a possible outcome.

    Less than predicted is no contradiction: holdings of plain init containers may not be listed (engine spec R3)."""
    # Usually everything is as predicted.
    if predicted.entries == seen.entries or frozenset(predicted.entries).issuperset(seen.entries):
        return []
    column = _exceeded(predicted.entries, seen.entries, facts.rules)
    if column is None:
        return []
    sits = {each.container: each.union for each in seen.containers}
    misplaced = [
        _misplaced(predicted, each, sits[each.container], facts)
        for each in predicted.containers
        if each.possible and not _is_within(sits.get(each.container, 0), each.possible)
    ]
    return misplaced or [_too_much(predicted, seen, column, facts.node, resources.names[column])]


def names(placement: PodPlacement) -> frozenset[str]:
    """Containers that the report names; init containers only if it is made from the managers' checkpoints."""
    return frozenset(held.container for held in placement.holdings)


def _numbers(alike: Sequence[HeldDevices]) -> tuple[int, int]:
    """Least and most devices that containers of a pod hold in one place: those with an id once each, of the others the
    largest number or the sum."""
    if len(alike) == 1:
        number = len(set(alike[0].ids)) or alike[0].count
        return number, number
    ids = {device for held in alike for device in held.ids}
    others = [held.count for held in alike if not held.ids]
    return (max(len(ids), *others), len(ids) + sum(others)) if others else (len(ids), len(ids))


def _cpus(cpus: int, facts: RowFacts) -> list[tuple[Where, int]]:
    """The number of CPUs in each zone; all of them in any zone if the core map is not known."""
    if not facts.zone_cpus:
        return [((CPU, facts.rules.every_zone), cpus.bit_count())] if cpus else []
    return [((CPU, 1 << place), own.bit_count()) for place, zone in enumerate(facts.zone_cpus) if (own := cpus & zone)]


@lru_cache(maxsize=MOST_KNOWN)
def _entries(amounts: frozenset[tuple[Where, int]], memory: frozenset[int]) -> tuple[Entry, ...]:
    """Cached, because replicas in the same zones have equal entries on every node."""
    return tuple(
        [
            Entry(column, amount, zones, span=zones.bit_count() if column in memory else 0)
            for (column, zones), amount in sorted(amounts)
        ]
    )


def _exceeded(predicted: tuple[Entry, ...], seen: tuple[Entry, ...], rules: NodeRules) -> int | None:
    """The first column in which some zone, or the node, has more than the prediction allows."""
    areas = [*(1 << position for position in range(len(rules.zones))), rules.every_zone]
    columns = sorted({entry.column for entry in seen if entry.zones})
    return next((c for c in columns if any(_least(seen, c, area) > _most(predicted, c, area) for area in areas)), None)


def _least(entries: tuple[Entry, ...], column: int, area: int) -> int:
    """The amount that is certainly in these zones."""
    inside = (each for each in entries if each.column == column and each.certain and each.zones & ~area == 0)
    return sum(entry.amount for entry in inside if entry.zones)


def _most(entries: tuple[Entry, ...], column: int, area: int) -> int:
    """The largest amount that may be in these zones."""
    return sum(entry.amount for entry in entries if entry.column == column and entry.zones & area)


def _is_within(mask: int, possible: Iterable[int]) -> bool:
    return any(not mask & ~each for each in possible)


def _misplaced(predicted: Holding, container: ContainerZones, observed: int, facts: RowFacts) -> Divergence:
    return Divergence(
        kind=DivergenceKind.ZONES,
        node=facts.node,
        pod=predicted.name,
        container=container.container,
        predicted=tuple(map(facts.rules.real, container.possible)),
        observed=facts.rules.real(observed),
    )


def _too_much(predicted: Holding, seen: Observation, column: int, node: str, resource: str) -> Divergence:
    modelled, reported = (
        sum(entry.amount for entry in entries if entry.column == column)
        for entries in (predicted.entries, seen.entries)
    )
    return Divergence(
        kind=DivergenceKind.AMOUNT,
        node=node,
        pod=predicted.name,
        resource=resource,
        modelled=modelled,
        reported=reported,
    )
