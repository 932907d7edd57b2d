"""How far zones and devices are from each other, as tables.

The page of a node calls `zones` for the distances that the report has, as `numactl -H` prints them, and `topology` for
its devices, in the words of `nvidia-smi topo -m`. A report says which zone a device belongs to and nothing of the PCIe
bridges below it, so devices of one zone are NODE: that close, or closer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.decode import cpuset
from numalign.api.objects import resourcenames
from numalign.dashboard.details import NodeDetail, Part, Zones

SELF: Final = "X"
NODE: Final = "NODE"
SYS: Final = "SYS"
NOT_KNOWN: Final = "?"
MEANINGS: Final = {
    SELF: "the device itself",
    NODE: "in the same NUMA zone; the report does not say which PCIe bridges lie between",
    SYS: "in different NUMA zones: over the link between them",
    NOT_KNOWN: "the device belongs to no zone that the report names",
}
NEAR, MIDDLE, FAR = "near", "middle", "far"


class Distance(Struct, frozen=True):
    """One cell. `shade`: how far it is among those of the node."""

    text: str
    shade: str = ""
    title: str = ""


class ZoneRow(Struct, frozen=True):
    zone: int
    cells: tuple[Distance, ...]


class DeviceRow(Struct, frozen=True):
    """Devices of one resource in the same zones."""

    name: str
    resource: str
    count: int
    zones: Zones
    cells: tuple[Distance, ...]
    cpus: str
    """The CPUs of its zones, as far as the report says."""


def zones(node: NodeDetail) -> list[ZoneRow]:
    """Empty: the report gives no distances."""
    known = sorted({each for row in node.distances.values() for each in row.values()})
    if not known:
        return []
    return [
        ZoneRow(zone, tuple(_between(node.distances, known, zone, other) for other in node.zones))
        for zone in node.zones
    ]


def _between(distances: Mapping[int, Mapping[int, int]], known: Sequence[int], zone: int, other: int) -> Distance:
    found = distances.get(zone, {}).get(other)
    if found is None:
        return Distance("-", "", f"zone {zone} to zone {other}: not reported")
    shade = NEAR if found == known[0] else FAR if found == known[-1] and len(known) > 2 else MIDDLE
    return Distance(str(found), shade, f"zone {zone} to zone {other}: {found}")


def topology(node: NodeDetail) -> list[DeviceRow]:
    """Empty: the node has no devices."""
    devices = [part for part in node.parts if _is_device(part)]
    names = _names(devices)
    return [
        DeviceRow(
            name=name,
            resource=part.resource,
            count=part.size,
            zones=part.zones,
            cells=tuple(_devices(part, other) for other in devices),
            cpus=_cpus(node, part.zones),
        )
        for name, part in zip(names, devices, strict=True)
    ]


def _is_device(part: Part) -> bool:
    named = part.resource in (resourcenames.CPU, resourcenames.EPHEMERAL_STORAGE)
    return not named and not resourcenames.is_bytes(part.resource) and part.size > 0


def _names(devices: Sequence[Part]) -> list[str]:
    """gpu@0, nic@0+1: the resource without its domain, unless two have the same, and the zones."""
    short = [part.resource.rpartition("/")[2] for part in devices]
    owners: dict[str, set[str]] = {}
    for name, part in zip(short, devices, strict=True):
        owners.setdefault(name, set()).add(part.resource)
    return [
        f"{name if len(owners[name]) == 1 else part.resource}@{'+'.join(map(str, part.zones)) or '-'}"
        for name, part in zip(short, devices, strict=True)
    ]


def _devices(one: Part, other: Part) -> Distance:
    if one is other and one.size == 1:
        word = SELF
    elif not one.zones or not other.zones:
        word = NOT_KNOWN
    else:
        word = NODE if set(one.zones) & set(other.zones) else SYS
    shade = {SELF: NEAR, NODE: NEAR, SYS: FAR}.get(word, "")
    return Distance(word, shade, MEANINGS[word])


def _cpus(node: NodeDetail, near: Zones) -> str:
    ids = [cpu for core in node.cores or () if core.zone in near for cpu in core.cpus]
    return cpuset.text(cpuset.of(ids)) if ids else ""
