"""Masks of zones, by real id and by position, turned into each other.

Reports and pods' placements name zones by id; everything in this room counts positions. The ledger asks here when an
observation comes in, and when a node's zones change between two reports and what is kept has to move."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec import structs

from numalign.placement.columns.holdings import ContainerZones, Entry, Holding

Zones = tuple[int, ...]
"""Real ids, ascending: position p stands for the p-th of them."""


@lru_cache(maxsize=1 << 12)
def positions(mask: int) -> tuple[int, ...]:
    """The zones of a mask, ascending; there are few masks, and all modules ask often."""
    return tuple(bits(mask))


def bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@lru_cache(maxsize=1 << 12)
def from_ids(mask: int, zones: Zones) -> int:
    """A mask of real ids as one of positions; zones that the node does not have are left out."""
    return sum(1 << position for position, zone in enumerate(zones) if mask >> zone & 1)


def moved(mask: int, old: Zones, new: Zones) -> int:
    """The same zones at their new positions."""
    return from_ids(sum(1 << old[position] for position in positions(mask) if position < len(old)), new)


def moved_holding(holding: Holding, old: Zones, new: Zones) -> Holding:
    """What a pod holds, at the new positions; entries whose zones are all gone are left out."""
    entries = (_moved_entry(entry, old, new) for entry in holding.entries)
    return structs.replace(
        holding,
        entries=tuple(entry for entry in entries if entry is not None),
        containers=tuple(
            ContainerZones(each.container, tuple(filter(None, (moved(mask, old, new) for mask in each.possible))))
            for each in holding.containers
        ),
    )


def _moved_entry(entry: Entry, old: Zones, new: Zones) -> Entry | None:
    if not entry.zones:
        return entry
    zones = moved(entry.zones, old, new)
    return structs.replace(entry, zones=zones) if zones else None
