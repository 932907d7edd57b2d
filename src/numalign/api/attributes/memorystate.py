"""The memory manager's table as the kubelet checkpoints it: what is free per zone, and which zones are grouped.

A zone whose memory is pinned together with others belongs to a group, and the kubelet gives memory only to whole
groups (kubelet spec 6.7); the plain numbers of a topology report cannot show that. The agent publishes this table from
the checkpoint; `attributes` calls the codec.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import grammar

ZONE: Final = re.compile(r"([0-9]+):([0-9]+):([-0-9+]*):(.*)")


class MemoryZone(Struct, frozen=True, kw_only=True):
    """One zone: how many blocks are assigned on it, the zones of its group as a mask, free bytes by memory type."""

    zone: int
    assignments: int
    cells: int
    free: Mapping[str, int]


def encode(zones: Iterable[MemoryZone]) -> str:
    """0:2:0-1:hugepages-1Gi=0,memory=10Gi;1:2:0-1:memory=0"""
    return ";".join(_zone(zone) for zone in sorted(zones, key=lambda zone: zone.zone))


def decode(body: str) -> tuple[MemoryZone, ...]:
    zones = [_from_zone(text) for text in grammar.split(body, ";")]
    grammar.unique((zone.zone, zone) for zone in zones)
    return tuple(sorted(zones, key=lambda zone: zone.zone))


def _zone(zone: MemoryZone) -> str:
    cells = grammar.zones(zone.cells)
    return f"{zone.zone}:{zone.assignments}:{cells}:{grammar.sizes(zone.free)}"


@lru_cache(maxsize=grammar.PARTS)
def _from_zone(text: str) -> MemoryZone:
    match = ZONE.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not zone:assignments:cells:type=free,...")
    return MemoryZone(
        zone=grammar.zone(match[1]),
        assignments=grammar.number(match[2]),
        cells=grammar.from_zones(match[3]),
        free=grammar.from_sizes(match[4]),
    )
