"""Pods of one shape that may sit in each other's places.

Where equal pods are pending together, what they hold in sum is known and which of them sits where is not (`commit`
marks them as interchangeable). That is good enough until they part: when one of them ends, or a report covers some and
not all. From then on each of the others may have any of the places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from numalign.placement.ledger.holdings import ContainerZones, Entry, Holding
from numalign.placement.ledger.podrecord import Record


def widened(records: Iterable[Record]) -> dict[str, Holding]:
    """By uid, for pods that are interchangeable: what each of them holds, wherever that may be."""
    by_shape: dict[int, list[Holding]] = {}
    for holding in [record.holding for record in records]:
        if holding is not None and holding.interchangeable:
            by_shape.setdefault(holding.shape, []).append(holding)
    return {holding.uid: holding for alike in by_shape.values() for holding in _widened(alike)}


def _widened(holdings: Sequence[Holding]) -> Sequence[Holding]:
    if all(each.entries == holdings[0].entries for each in holdings):
        return holdings
    zones: dict[int, int] = {}
    for entry in (entry for each in holdings for entry in each.entries):
        zones[entry.column] = zones.get(entry.column, 0) | entry.zones
    places: dict[str, set[int]] = {}
    for container in (container for each in holdings for container in each.containers):
        places.setdefault(container.container, set()).update(container.possible)
    return [
        structs.replace(
            each,
            entries=tuple(_over(entry, zones[entry.column]) for entry in each.entries),
            containers=tuple(
                ContainerZones(container.container, tuple(sorted(places[container.container])))
                for container in each.containers
            ),
        )
        for each in holdings
    ]


def _over(entry: Entry, zones: int) -> Entry:
    return structs.replace(entry, zones=zones) if entry.zones else entry
