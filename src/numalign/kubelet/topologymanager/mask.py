"""Sets of zones as bit masks, in the order in which the kubelet enumerates and compares them.

A mask is a plain int with bit z set for zone z. The kubelet enumerates masks by size and, inside a size, by
lexicographic combinations of the zone list; it compares them by size and then by value. The two orders differ
({0,3} is enumerated before {1,2} but is the larger value): kubelet spec 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations

Mask = int


def of(zones: Iterable[int]) -> Mask:
    mask = 0
    for zone in zones:
        mask |= 1 << zone
    return mask


@lru_cache(maxsize=4096)
def members(mask: Mask) -> tuple[int, ...]:
    """The zone ids in a mask, ascending."""
    return tuple(zone for zone in range(mask.bit_length()) if mask >> zone & 1)


def width(mask: Mask) -> tuple[int, int]:
    """Sorts the narrower mask first: fewer zones, then the lower value."""
    return mask.bit_count(), mask


@lru_cache(maxsize=256)
def enumerated(zones: tuple[int, ...]) -> tuple[tuple[Mask, int], ...]:
    """Every non-empty mask over `zones` in the kubelet's order, with its dense index: bit i is the i-th zone."""
    return tuple(
        (of(zones[i] for i in places), of(places))
        for size in range(1, len(zones) + 1)
        for places in combinations(range(len(zones)), size)
    )


def of_size(zones: tuple[int, ...], size: int) -> Iterator[Mask]:
    """Masks of one size over `zones`, lowest value first, one at a time: for machines too large to list."""
    if size == 0:
        yield 0
        return
    for highest in range(size - 1, len(zones)):
        for rest in of_size(zones[:highest], size - 1):
            yield rest | 1 << zones[highest]
