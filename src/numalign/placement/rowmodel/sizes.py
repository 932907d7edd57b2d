"""How many zones a request takes by size, and sums over zones: the arithmetic that all pools share.

Zones are positions, zone sets masks. What is taken somewhere in several zones is bounded from both sides (engine spec
9); pools put these bounds together with what they know exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from numalign.kubelet import mask as masks
from numalign.kubelet.hints import Room, Supply
from numalign.placement.ledger.holdings import Entry

Sizes = tuple[tuple[int, int], ...]
"""(zone set, amount) pairs, as the kubelet's rooms want them."""


def by_zone(amounts: Sequence[int]) -> Sizes:
    return tuple((1 << position, amount) for position, amount in enumerate(amounts) if amount)


@lru_cache(maxsize=1 << 14)
def smallest(domain: int, sizes: tuple[Sizes, ...], needs: tuple[int, ...]) -> int:
    """Zones that requests take together, whatever is free: what makes a mask preferred (engine spec 3)."""
    supplies = tuple(Supply(need, dict(size), {}) for size, need in zip(sizes, needs, strict=True))
    return Room(masks.members(domain), supplies).smallest


def total(amounts: Sequence[int], mask: int) -> int:
    found = 0
    while mask:
        low = mask & -mask
        found += amounts[low.bit_length() - 1]
        mask ^= low
    return found


def touching(entries: Iterable[Entry], mask: int) -> int:
    """What may lie in these zones at most."""
    return sum([entry.amount for entry in entries if entry.zones & mask])


def inside(entries: Iterable[Entry], mask: int) -> int:
    """What lies in these zones at least."""
    return sum([entry.amount for entry in entries if entry.certain and entry.zones and not entry.zones & ~mask])


def zones_with(amounts: Sequence[int], among: int = -1) -> int:
    """The positions that have anything, among those inside."""
    return sum([1 << position for position, amount in enumerate(amounts) if amount > 0 and among >> position & 1])
