"""Which partitions of linked GPUs a container may get: best links first, and those that leave most to others.

`choosing` calls `ways` for whole GPUs. A partition of a higher score comes first; Koordinator's documentation says so,
and its code takes the lowest one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from numalign.placement.columns.deviceshares import DeviceStock

WEIGHTS: Final = ((8, 10_000), (4, 100), (2, 1))
"""By least size, what a partition that stays free is worth."""


def ways(
    stock: DeviceStock, fitting: Collection[int], free: Collection[int], count: int, *, bandwidth: int, only_best: bool
) -> Iterator[tuple[int, ...]]:
    """`fitting`: GPUs that the container may have, `free`: all that are free on the node; both by place."""
    sized = [each for each in stock.partitions if len(each.minors) == count and each.bandwidth >= bandwidth]
    best = max((each.score for each in sized), default=0)
    unused, found = frozenset(free), []
    for each in sized:
        places = tuple(stock.place.get(("gpu", minor), -1) for minor in each.minors)
        if all(place in fitting for place in places) and (each.score == best or not only_best):
            found.append((-each.score, -_left(stock, unused - set(places), count), places))
    for *_, places in sorted(found):
        yield places


def _left(stock: DeviceStock, free: Collection[int], count: int) -> int:
    """What the partitions that are still possible are worth, among those that are not smaller."""
    total = 0
    for each in stock.partitions:
        size = len(each.minors)
        if size >= count and all(stock.place.get(("gpu", minor), -1) in free for minor in each.minors):
            total += next((worth for least, worth in WEIGHTS if size >= least), 0) * max(1, each.score)
    return total
