"""A node's report as the resource topology exporter (RTE) and the NFD topology updater write it.

The simulator and tests of degraded operation call `of`. Both publishers know only the Pod Resources API and sysfs, so
plain init containers, reserved CPUs, memory groups and devices without a zone are missing, and so are our attributes.
Zones have their real ids; the publishers' errors on machines with gaps are not imitated (exporter spec, D-02)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import structs

from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.nrt import fingerprint
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.objects import resourcenames
from numalign.kubelet import admission, holdings, start
from numalign.kubelet.cpu.topology import discover
from numalign.kubelet.machine import machine
from numalign.kubelet.report import report
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks

Publisher = Literal["rte", "nfd"]

PER_ZONE_PAGES = frozenset({"hugepages-2Mi", "hugepages-1Gi"})
"""Page sizes of which RTE knows the capacity (exporter spec, D-06)."""

Tally = dict[int, Counter[str]]
"""Zone id to resource to amount: CPUs, bytes, devices."""


def of(node: str, kubelet: Kubelet, state: KubeletState, publisher: Publisher = "rte") -> NodeTopology:
    """The report that this publisher writes once it has seen the node as it is now."""
    state = admission.collect(kubelet, state)
    listed = tuple(map(_by_container, holdings.listed(kubelet, state)))
    allocatable = _allocatable(kubelet)
    held = [holding for pod in listed for holding in pod.holdings]
    used = _used(kubelet, held, allocatable, publisher)
    zones = kubelet.machine.zones
    return NodeTopology(
        node=node,
        # No publisher reports the limit (exporter spec, D-27).
        manager=structs.replace(report.manager(kubelet), max_zones=start.DEFAULT_MAX_ZONES),
        zones=tuple(_zone(kubelet, zone, allocatable[zone.id], used[zone.id], publisher=publisher) for zone in zones),
        fingerprint=_signature(listed, publisher),
        placement=report.payload(kubelet, listed) if publisher == "rte" else None,
    )


def _by_container(pod: PodPlacement) -> PodPlacement:
    """Neither publisher looks at what a pod holds as a whole (exporter spec, D-34)."""
    own = tuple(holding for holding in pod.holdings if holding.container != holdings.WHOLE_POD)
    return structs.replace(pod, holdings=own)


def _signature(listed: tuple[PodPlacement, ...], publisher: Publisher) -> Fingerprint | None:
    if publisher == "rte":
        return report.signature(listed, fingerprint.Method.EXCLUSIVE)
    return report.signature(listed, fingerprint.Method.ALL) if listed else None


def _allocatable(kubelet: Kubelet) -> Tally:
    """What GetAllocatableResources adds up to, zone by zone (exporter spec 2.5)."""
    found: Tally = {zone: Counter() for zone in kubelet.machine.zone_ids}
    if kubelet.cpu:
        _add_cpus(found, kubelet, kubelet.cpu.allocatable)
    for zone, amounts in kubelet.memory.allocatable.items() if kubelet.memory else ():
        found[zone].update({kind: amount for kind, amount in amounts.items() if amount > 0})
    for resource, inventory in kubelet.devices.inventories.items():
        for each in inventory.healthy & inventory.zones.keys():
            _add(found, resource, inventory.zones[each], 1)
    return found


def _used(kubelet: Kubelet, held: Iterable[Holding], allocatable: Tally, publisher: Publisher) -> Tally:
    used: Tally = {zone: Counter() for zone in kubelet.machine.zone_ids}
    for holding in held:
        _add_cpus(used, kubelet, holding.cpus)
        for block in holding.memory:
            if publisher == "rte":
                _add(used, block.type, block.zones, block.size)  # in full from each of its zones (D-07)
            else:
                _drain(used, allocatable, block)
        for devices in holding.devices:
            # NFD looks devices up among those that can be had; RTE deducts sick ones as well (exporter spec, D-28).
            number = devices.count if publisher == "rte" else _healthy(kubelet, devices)
            for zone, count in _entries(devices.zones or 0, number, publisher):
                _add(used, devices.resource, 1 << zone, count)
    return used


def _entries(zones: int, count: int, publisher: Publisher) -> Iterator[tuple[int, int]]:
    """The API lists a device once per zone; NFD takes every one of these entries for the device's last zone (D-24)."""
    members = masks.members(zones)
    yield from ((zone if publisher == "rte" else members[-1], count) for zone in members)


def _healthy(kubelet: Kubelet, held: HeldDevices) -> int:
    inventory = kubelet.devices.inventories.get(held.resource)
    return len(inventory.healthy.intersection(held.ids)) if inventory else 0


def _drain(used: Tally, allocatable: Tally, block: MemoryBlock) -> None:
    """NFD takes a block from its zones in ascending order, as much as each still has (exporter spec 5.6)."""
    left = block.size
    for zone in masks.members(block.zones):
        part = max(0, min(left, allocatable[zone][block.type] - used[zone][block.type]))
        used[zone][block.type] += part
        left -= part


def _add_cpus(tally: Tally, kubelet: Kubelet, cpus: int) -> None:
    for zone, members in discover(kubelet.machine).zones.items() if cpus else ():
        if members & cpus:
            tally[zone][resourcenames.CPU] += (members & cpus).bit_count()


def _add(tally: Tally, resource: str, zones: int, amount: int) -> None:
    for zone in masks.members(zones):
        if zone in tally:
            tally[zone][resource] += amount


def _zone(
    kubelet: Kubelet, zone: machine.Zone, allocatable: Counter[str], used: Counter[str], *, publisher: Publisher
) -> Zone:
    """A zone with nothing to allocate is reported with no CPUs; one with something may lack them (D-37)."""
    capacity = _capacity(zone, publisher)
    amounts = {
        resource: _amounts(resource, max(amount, capacity.get(resource, 0)), amount, amount - used[resource])
        for resource, amount in sorted((allocatable or {resourcenames.CPU: 0}).items())
    }
    return Zone(id=zone.id, resources=amounts, costs=report.costs(zone, kubelet.machine.zone_ids))


def _capacity(zone: machine.Zone, publisher: Publisher) -> Mapping[str, int]:
    pages = {
        page.resource: page.total_bytes
        for page in zone.hugepages
        if publisher == "nfd" or page.resource in PER_ZONE_PAGES
    }
    cpus = sum(len(core.cpus) for core in zone.cores)
    return pages | {resourcenames.CPU: cpus, resourcenames.MEMORY: zone.memory}


def _amounts(resource: str, capacity: int, allocatable: int, available: int) -> Amounts:
    unit = report.MILLI if resource == resourcenames.CPU else 1
    return Amounts(unit * capacity, unit * allocatable, unit * max(0, available))
