"""What a node has of every resource, by zone position, and where a report's amounts belong among it.

`read` calls this module for a node's first report and for every report that is based on other hardware. The agent's
facts count where they are there, since they come from the managers' checkpoints; else the zones' amounts do. cpu is
rounded down to whole CPUs, because no pod gets a part of one exclusively."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from msgspec import Struct

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.deviceclasses import DeviceCount as PublishedClass
from numalign.api.attributes.managers import MemoryZone
from numalign.api.decode.quantity import Quantity
from numalign.api.nrt.nodetopology import Amounts, NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.placement.columns import zonesets
from numalign.placement.columns.nodefacts import DeviceClass, Stock, Supply, supplies_of
from numalign.placement.reports.hardware import Cores

MILLI = 1000
NOTHING = Amounts(0, 0, 0)
ALIKE = 1 << 14
"""Number of cached resources and amounts; nodes of one hardware type share them."""


class DeviceSlots(Struct, frozen=True):
    """Where the published device classes are counted; classes are known by their place in the report."""

    in_zones: tuple[tuple[int, int], ...] = ()
    """Classes in one zone, with their places in `Supplies.free`."""
    homeless: tuple[tuple[int, int], ...] = ()
    """Classes in no zone, with the place of their resource among the stock's names."""
    wide: tuple[tuple[int, DeviceClass], ...] = ()
    """Classes in several zones."""


def stock(topology: NodeTopology, cores: Cores | None) -> Stock:
    """The size and the allocatable amount of every resource, always including cpu."""
    memory, devices = _names(topology, memory=True), _devices(topology)
    found = {resourcenames.CPU: _cpus(topology, cores), **{name: _memory(topology, name) for name in memory}, **devices}
    # In the order of the report: most of its amounts are then in the order of the stock.
    found = {name: found[name] for name in topology.zones[0].resources if name in found} | found
    return supplies_of(found).stock


def device_slots(topology: NodeTopology, names: Sequence[str]) -> DeviceSlots:
    classes = topology.facts.devices or ()
    in_zones, homeless, wide = list[tuple[int, int]](), list[tuple[int, int]](), list[tuple[int, DeviceClass]]()
    for resource, published in _by_resource(classes):
        for at, each, zones, is_wide in _with_zones(published, zone_ids(topology)):
            if is_wide:
                wide.append((at, DeviceClass(resource=resource, zones=zones, size=each.total, free=0)))
            elif zones:
                in_zones.append((at, (zones.bit_length() - 1) * len(names) + names.index(resource)))
            else:
                homeless.append((at, names.index(resource)))
    return DeviceSlots(tuple(in_zones), tuple(homeless), tuple(wide))


def homeless(classes: Sequence[PublishedClass], slots: DeviceSlots, width: int) -> tuple[int, ...]:
    """Free devices that belong to no zone, in the order of the stock's names; empty: none of any."""
    found = [0] * width
    for at, place in slots.homeless:
        found[place] += classes[at].free
    return tuple(found) if any(found) else ()


def free_cpus(facts: NodeFacts) -> int | None:
    """The CPU manager's shared set less the reserved CPUs; None: not published."""
    if facts.default_cpus is None or facts.reserved_cpus is None:
        return None
    return facts.default_cpus & ~facts.reserved_cpus


def on_full_cores(facts: NodeFacts, cores: Cores | None) -> int | None:
    """The number of CPUs of the shared set on cores without a reserved CPU; None: not known."""
    if cores is None or facts.default_cpus is None or facts.reserved_cpus is None:
        return None
    return cores.on_full_cores(facts.default_cpus, facts.reserved_cpus)


def memory_table(topology: NodeTopology) -> Sequence[MemoryZone] | None:
    """The Memory Manager's table by position; None unless it is published for exactly these zones."""
    table = topology.facts.memory
    if table is None:
        return None
    zones = [zone.id for zone in topology.zones]
    if [each.zone for each in table] == zones:
        return table
    by_zone = {each.zone: each for each in table}
    return [by_zone[zone] for zone in zones] if sorted(by_zone) == zones else None


def missed(found: Mapping[str, Supply], node: Node | None) -> dict[str, int]:
    """By resource, the difference between the zones' sizes and the Node's capacity (engine spec R6).

    Too little: CPUs are reserved, or devices unhealthy or without a zone. Too much: devices lie in several zones."""
    capacity = node.status.capacity if node else {}
    whole = {name: _whole(name, capacity[name]) for name in found if name in capacity}
    differences = {name: abs(amount - sum(found[name].size)) for name, amount in whole.items()}
    return {name: amount for name, amount in differences.items() if amount}


@lru_cache(maxsize=ALIKE)
def is_memory(name: str) -> bool:
    return name == resourcenames.MEMORY or resourcenames.is_hugepages(name)


@lru_cache(maxsize=ALIKE)
def is_device(name: str) -> bool:
    return name != resourcenames.CPU and not is_memory(name)


def zone_ids(topology: NodeTopology) -> tuple[int, ...]:
    return tuple([zone.id for zone in topology.zones])


@lru_cache(maxsize=ALIKE)
def _whole(resource: str, amount: Quantity) -> int:
    return amount.milli // MILLI if resource == resourcenames.CPU else amount.value


def _cpus(topology: NodeTopology, cores: Cores | None) -> Supply:
    size, allocatable = (tuple([amount // MILLI for amount in row]) for row in _amounts(topology, resourcenames.CPU))
    if cores is None:
        return Supply(size=size, allocatable=allocatable, free=size)
    if free_cpus(topology.facts) is not None and topology.facts.reserved_cpus is not None:
        allocatable = cores.by_position(cores.topology.cpus & ~topology.facts.reserved_cpus)
    return Supply(size=cores.sizes, allocatable=allocatable, free=allocatable)


def _memory(topology: NodeTopology, name: str) -> Supply:
    """Memory or hugepages; how much there is means how much can be had (engine spec 2)."""
    _, allocatable = _amounts(topology, name)
    return Supply(size=allocatable, allocatable=allocatable, free=allocatable)


def _devices(topology: NodeTopology) -> dict[str, Supply]:
    """Devices that lie in one zone or in none."""
    classes = topology.facts.devices
    if classes is None:
        amounts = {name: _amounts(topology, name) for name in _names(topology, memory=False)}
        return {name: Supply(size=size, allocatable=most, free=most) for name, (size, most) in amounts.items()}
    return {resource: _by_zone(published, zone_ids(topology)) for resource, published in _by_resource(classes)}


def _by_zone(published: Sequence[tuple[int, PublishedClass]], zones: tuple[int, ...]) -> Supply:
    size, allocatable, homeless = [0] * len(zones), [0] * len(zones), 0
    for _, each, mask, is_wide in _with_zones(published, zones):
        if is_wide:
            continue
        if not mask:
            homeless += each.total
            continue
        position = mask.bit_length() - 1
        size[position] += each.total
        allocatable[position] += each.healthy
    healthy = tuple(allocatable)
    return Supply(size=tuple(size), allocatable=healthy, free=healthy, homeless_size=homeless)


def _by_resource(classes: Sequence[PublishedClass]) -> list[tuple[str, list[tuple[int, PublishedClass]]]]:
    """Device classes with their places in the report."""
    offered = [(at, each) for at, each in enumerate(classes) if is_device(each.resource)]
    offered.sort(key=lambda each: each[1].resource)
    return [(resource, list(group)) for resource, group in groupby(offered, key=lambda each: each[1].resource)]


def _with_zones(
    published: Sequence[tuple[int, PublishedClass]], zones: tuple[int, ...]
) -> list[tuple[int, PublishedClass, int, bool]]:
    """Classes of one resource, with their zones by position, and whether they count as lying in several zones."""
    masks = [zonesets.from_ids(each.zones or 0, zones) for _, each in published]
    # Where devices name zones but none that exists, no mask ever has room for them (kubelet spec 7.2).
    adrift = not any(masks)
    return [
        (at, each, mask, mask.bit_count() > 1 or (adrift and bool(each.zones)))
        for (at, each), mask in zip(published, masks, strict=True)
    ]


def _amounts(topology: NodeTopology, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Capacity and allocatable by position."""
    found = [zone.resources.get(resource, NOTHING) for zone in topology.zones]
    return tuple([each.capacity for each in found]), tuple([each.allocatable for each in found])


def _names(topology: NodeTopology, *, memory: bool) -> list[str]:
    """Memory and hugepages, or devices."""
    names = {name for zone in topology.zones for name in zone.resources}
    return sorted([sys.intern(name) for name in names if (is_memory(name) if memory else is_device(name))])
