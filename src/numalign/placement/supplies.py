"""What a report says of every resource, by zone position: how much there is, can be had, and is free.

`ingest` calls one function per kind of resource. The agent's facts count where they are there, since they come from
the managers' checkpoints; else the zones' plain amounts do. cpu is rounded down to whole CPUs, for nobody gets a part
of one exclusively."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final

from numalign.api import resourcenames
from numalign.api.attributes import NodeFacts
from numalign.api.deviceclasses import DeviceClass as PublishedClass
from numalign.api.memorystate import MemoryZone
from numalign.api.node import Node
from numalign.api.nodetopology import Amounts, NodeTopology
from numalign.api.quantity import Quantity
from numalign.placement import zonemasks
from numalign.placement.hardware import Cores
from numalign.placement.rowfacts import DeviceClass, Groups, Supply

MILLI = 1000
NOTHING = Amounts(0, 0, 0)
RESOURCE: Final = attrgetter("resource")
ALIKE = 1 << 14
"""Different resources and amounts that are remembered; nodes of one make have the same."""


def cpus(topology: NodeTopology, cores: Cores | None) -> Supply:
    listed = _listed(topology, resourcenames.CPU)
    size, allocatable, free = (tuple([amount // MILLI for amount in row]) for row in listed)
    size, allocatable = _shared(size), _shared(allocatable)
    if cores is None:
        return Supply(size=size, allocatable=allocatable, free=free)
    left = free_cpus(topology.facts)
    if left is not None and topology.facts.reserved_cpus is not None:
        allocatable = cores.by_position(cores.topology.cpus & ~topology.facts.reserved_cpus)
        free = cores.by_position(left)
    return Supply(size=cores.sizes, allocatable=_shared(allocatable), free=free)


def free_cpus(facts: NodeFacts) -> int | None:
    """The CPU manager's shared set less what it never hands out; None: not published."""
    if facts.default_cpus is None or facts.reserved_cpus is None:
        return None
    return facts.default_cpus & ~facts.reserved_cpus


def on_full_cores(facts: NodeFacts, cores: Cores | None) -> int | None:
    """Of the shared set, CPUs on cores without a reserved one; None: not known."""
    if cores is None or facts.default_cpus is None or facts.reserved_cpus is None:
        return None
    return cores.on_full_cores(facts.default_cpus, facts.reserved_cpus)


def by_free_threads(facts: NodeFacts, cores: Cores | None) -> tuple[tuple[int, ...], ...] | None:
    """By position: how many cores have t free threads, t from 1; None: not known."""
    free = free_cpus(facts)
    return cores.by_free_threads(free) if cores is not None and free is not None else None


def memory(topology: NodeTopology) -> dict[str, Supply]:
    """Memory and hugepages; how much there is means how much can be had (engine spec 2)."""
    checkpoint = free_memory(topology)
    found = {}
    for kind in _names(topology, is_memory):
        _, allocatable, free = _listed(topology, kind)
        if checkpoint is not None:
            free = tuple(min(zone.get(kind, 0), most) for zone, most in zip(checkpoint, allocatable, strict=True))
        found[kind] = Supply(size=allocatable, allocatable=allocatable, free=free)
    return found


def free_memory(topology: NodeTopology) -> list[Mapping[str, int]] | None:
    """By position what the memory manager has free; None unless its table speaks of just these zones."""
    if topology.facts.memory is None:
        return None
    table = {zone.zone: zone.free for zone in topology.facts.memory}
    zones = [zone.id for zone in topology.zones]
    return [table[zone] for zone in zones] if sorted(table) == zones else None


def groups(topology: NodeTopology) -> Groups | None:
    """The memory manager's groups, where its table is published."""
    if free_memory(topology) is None or topology.facts.memory is None:
        return None
    return groups_in(topology.facts.memory, zone_ids(topology))


def groups_in(table: Iterable[MemoryZone], zones: tuple[int, ...]) -> Groups:
    """The groups of a table that speaks of just these zones."""
    busy = sum([1 << zones.index(zone.zone) for zone in table if zone.assignments])
    return Groups(tuple([zonemasks.from_ids(zone.cells, zones) for zone in table]), busy)


def devices(topology: NodeTopology) -> tuple[dict[str, Supply], tuple[DeviceClass, ...]]:
    """Devices that lie in one zone or in none, and the classes of those that lie in several."""
    if topology.facts.devices is None:
        return {name: _plain_devices(topology, name) for name in _names(topology, is_device)}, ()
    zones = zone_ids(topology)
    single: dict[str, Supply] = {}
    wide: list[DeviceClass] = []
    offered = sorted([each for each in topology.facts.devices if is_device(each.resource)], key=RESOURCE)
    for resource, published in groupby(offered, key=RESOURCE):
        found = [(each, zonemasks.from_ids(each.zones or 0, zones)) for each in published]
        # Where devices name zones but none that exists, no mask ever has room for them (kubelet spec 7.2).
        adrift = not any(mask for _, mask in found)
        is_wide = [mask.bit_count() > 1 or (adrift and bool(each.zones)) for each, mask in found]
        single[resource] = _by_zone([pair for pair, wider in zip(found, is_wide, strict=True) if not wider], len(zones))
        wide += [_wide(*pair) for pair, wider in zip(found, is_wide, strict=True) if wider]
    return single, tuple(wide)


def missed(found: Mapping[str, Supply], node: Node | None) -> dict[str, int]:
    """By resource: by how much the zones' sizes differ from what the Node says it has (engine spec R6).

    Too little: CPUs are reserved, or devices unhealthy or without a zone. Too much: devices lie in several zones."""
    capacity = node.status.capacity if node else {}
    whole = {name: _whole(name, capacity[name]) for name in found if name in capacity}
    differences = {name: abs(amount - sum(found[name].size)) for name, amount in whole.items()}
    return {name: amount for name, amount in differences.items() if amount}


@lru_cache(maxsize=ALIKE)
def is_memory(name: str) -> bool:
    return name == resourcenames.MEMORY or resourcenames.is_hugepages(name)


@lru_cache(maxsize=ALIKE)
def memory_places(names: tuple[str, ...]) -> tuple[int, ...]:
    """Where memory is among resources."""
    return tuple(place for place, name in enumerate(names) if is_memory(name))


@lru_cache(maxsize=ALIKE)
def is_device(name: str) -> bool:
    return name != resourcenames.CPU and not is_memory(name)


def zone_ids(topology: NodeTopology) -> tuple[int, ...]:
    return tuple([zone.id for zone in topology.zones])


@lru_cache(maxsize=ALIKE)
def _whole(resource: str, amount: Quantity) -> int:
    return amount.milli // MILLI if resource == resourcenames.CPU else amount.value


def _listed(topology: NodeTopology, resource: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Capacity, allocatable and available by position."""
    found = [zone.resources.get(resource, NOTHING) for zone in topology.zones]
    return (
        _shared(tuple([each.capacity for each in found])),
        _shared(tuple([each.allocatable for each in found])),
        tuple([each.available for each in found]),
    )


@lru_cache(maxsize=ALIKE)
def _shared(amounts: tuple[int, ...]) -> tuple[int, ...]:
    """One tuple for all nodes that have the same: what there is rarely differs, unlike what is free."""
    return amounts


def _plain_devices(topology: NodeTopology, resource: str) -> Supply:
    size, allocatable, free = _listed(topology, resource)
    return Supply(size=size, allocatable=allocatable, free=free)


def _by_zone(found: Sequence[tuple[PublishedClass, int]], width: int) -> Supply:
    size, allocatable, free = [0] * width, [0] * width, [0] * width
    homeless = homeless_size = 0
    for each, zones in found:
        if not zones:
            homeless, homeless_size = homeless + each.free, homeless_size + each.total
            continue
        position = zones.bit_length() - 1
        size[position] += each.total
        allocatable[position] += each.healthy
        free[position] += each.free
    return Supply(
        size=_shared(tuple(size)),
        allocatable=_shared(tuple(allocatable)),
        free=tuple(free),
        homeless=homeless,
        homeless_size=homeless_size,
    )


def _wide(each: PublishedClass, zones: int) -> DeviceClass:
    return DeviceClass(resource=each.resource, zones=zones, size=each.total, free=each.free)


def _names(topology: NodeTopology, wanted: Callable[[str], bool]) -> list[str]:
    names: set[str] = set()
    for zone in topology.zones:
        names.update(zone.resources)
    return sorted([sys.intern(name) for name in names if wanted(name)])
