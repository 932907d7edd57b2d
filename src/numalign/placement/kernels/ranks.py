"""Masks in the order in which the kubelet compares them, as tables for kernels.

Made once per kind of node. Fewer zones come first, then closer ones where the node prefers them, then the lower mask
(engine spec 4); the memory manager never looks at distances (kubelet spec 6.4). With `align-by-socket` a mask also
stands for the sockets that it touches."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from numalign.placement.columns.noderules import BY_SOCKET, NodeRules


class Ranks(Struct, frozen=True):
    """Tables over all masks of a node."""

    ranked: tuple[int, ...]
    """Every mask but the empty one, best first."""
    narrowest: tuple[int, ...]
    """The same without regard to distances."""
    starts: tuple[int, ...]
    """By number of zones: where its masks start in either table; one more entry for the end."""
    count: tuple[int, ...]
    """By mask: how many zones."""
    sockets: tuple[int, ...]
    """By mask: how many sockets it touches; empty without `align-by-socket`."""
    area: tuple[int, ...]
    """By mask: the zones that CPUs aligned to it may come from."""


@lru_cache(maxsize=1024)
def of(rules: NodeRules) -> Ranks:
    zones = len(rules.zones)
    every = range(1 << zones)
    distances = None if rules.policy == "single-numa-node" else rules.distances
    count = tuple(mask.bit_count() for mask in every)
    touched = tuple(_touched(rules.sockets, mask) for mask in every) if BY_SOCKET in rules.cpu_options else ()
    return Ranks(
        ranked=tuple(sorted(every[1:], key=lambda mask: (count[mask], _distance(distances, mask), mask))),
        narrowest=tuple(sorted(every[1:], key=lambda mask: (count[mask], mask))),
        starts=(0, *(sum(0 < count[mask] < size for mask in every) for size in range(1, zones + 2))),
        count=count,
        sockets=tuple(sockets.bit_count() for sockets in touched),
        area=tuple(_area(rules.sockets, sockets) for sockets in touched) or tuple(every),
    )


def _distance(distances: tuple[tuple[int, ...], ...] | None, mask: int) -> int:
    """Over all ordered pairs, a zone to itself included (kubelet spec 3.3)."""
    if distances is None:
        return 0
    zones = [zone for zone in range(mask.bit_length()) if mask >> zone & 1]
    return sum(distances[a][b] for a in zones for b in zones)


def _touched(sockets: tuple[int, ...], mask: int) -> int:
    found = 0
    for zone, own in enumerate(sockets):
        found |= own if mask >> zone & 1 else 0
    return found


def _area(sockets: tuple[int, ...], touched: int) -> int:
    return sum(1 << zone for zone, own in enumerate(sockets) if own & touched)
