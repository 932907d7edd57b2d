"""Devices of a node, counted by the exact set of zones that each is attached to.

A topology report lists a device under each of its zones, so a device on two zones counts twice, and one without a zone
not at all. The kubelet's Device Manager uses zone sets and unhealthy devices, too (kubelet spec 7.2). The agent
publishes these counts; `attributes` calls the codec."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import grammar

CLASS: Final = re.compile(r"([^=]+)=([-0-9+]*|none):([0-9]+)/([0-9]+)/([0-9]+)")
NO_TOPOLOGY: Final = "none"


class DeviceCount(Struct, frozen=True, kw_only=True):
    """Devices of one resource on one set of zones; free means healthy and unassigned."""

    resource: str
    zones: int | None
    """None: the plugin reports no topology; the empty mask: a topology that names no zone."""
    total: int
    healthy: int
    free: int


def encode(classes: Iterable[DeviceCount]) -> str:
    """example.com/nic=0:4/4/3;example.com/nic=0+1:1/1/0"""
    return ";".join(map(_class, sorted(classes, key=_order)))


def decode(body: str) -> tuple[DeviceCount, ...]:
    classes = [_from_class(text) for text in grammar.split(body, ";")]
    grammar.unique(((item.resource, item.zones), item) for item in classes)
    return tuple(sorted(classes, key=_order))


def zones_text(zones: int | None) -> str:
    return NO_TOPOLOGY if zones is None else grammar.zones(zones)


def zones_from_text(text: str) -> int | None:
    return None if text == NO_TOPOLOGY else grammar.from_zones(text)


def _class(item: DeviceCount) -> str:
    where = f"{grammar.word(item.resource)}={zones_text(item.zones)}"
    return f"{where}:{item.total}/{item.healthy}/{item.free}"


@lru_cache(maxsize=grammar.PARTS)
def _from_class(text: str) -> DeviceCount:
    match = CLASS.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not resource=zones:total/healthy/free")
    total, healthy, free = (grammar.number(match[place]) for place in (3, 4, 5))
    if not total >= healthy >= free:
        raise grammar.AttributeTextError(f"{errors.echo(text)} has more free than healthy or healthy than all")
    resource = grammar.from_word(match[1])
    return DeviceCount(resource=resource, zones=zones_from_text(match[2]), total=total, healthy=healthy, free=free)


def _order(item: DeviceCount) -> tuple[str, int]:
    return item.resource, -1 if item.zones is None else item.zones
