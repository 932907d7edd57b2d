"""A node's report in the format of RTE and NFD: the kubelet's podresources added up by zone.

`inventory` uses it in the modes `rte` and `nfd`; recorded cases of both programs test `zones`. It counts resources and
allocatable amounts as they do, without their defects, which docs/compatibility/publishers.md numbers;
`kubelet.report.plainreport` imitates the programs with their defects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import structs

from numalign.agent.sources.podresources import Allocatable, DeviceEntry, MemoryEntry, PodResources
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.nrt import fingerprint
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.objects import resourcenames
from numalign.kubelet import holdings
from numalign.kubelet.machine import machine as machines
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.report import report
from numalign.kubelet.start import Kubelet
from numalign.kubelet.topologymanager import mask as masks

Form = Literal["rte", "nfd"]
NOTHING: Final = frozenset[str]()
Tally = dict[int, Counter[str]]
"""Zone id to resource to amount: CPUs, bytes, devices."""


def of(node: str, kubelet: Kubelet, pods: Iterable[PodResources], form: Form) -> NodeTopology:
    """The report with the node-level facts that the programs publish."""
    listed = tuple(map(placement, pods))
    return NodeTopology(
        node=node,
        manager=report.manager(kubelet),
        fingerprint=_signature(listed, form),
        placement=report.payload(kubelet, listed) if form == "rte" else None,
    )


def _signature(listed: tuple[PodPlacement, ...], form: Form) -> Fingerprint | None:
    if form == "rte":
        return report.signature(listed, fingerprint.Method.EXCLUSIVE)
    return report.signature(listed, fingerprint.Method.ALL) if listed else None


def placement(pod: PodResources) -> PodPlacement:
    """The placement of a pod as podresources lists it."""
    own = tuple(_holding(each.name, each.cpus, each.memory, each.devices) for each in pod.containers)
    whole = _holding(holdings.WHOLE_POD, pod.cpus, pod.memory) if pod.cpus or pod.memory else None
    return PodPlacement(namespace=pod.namespace, name=pod.name, holdings=(*own, whole) if whole else own)


def _holding(
    name: str, cpus: Iterable[int], memory: Iterable[MemoryEntry], devices: Iterable[DeviceEntry] = ()
) -> Holding:
    return Holding(
        container=name,
        cpus=masks.of(cpus),
        memory=tuple(MemoryBlock(type=each.type, zones=masks.of(real(each.zones)), size=each.size) for each in memory),
        devices=tuple(_held(each) for each in devices if each.ids),
    )


def _held(entry: DeviceEntry) -> HeldDevices:
    zones = None if entry.zones is None else masks.of(real(entry.zones))
    return HeldDevices(resource=entry.resource, zones=zones, count=len(entry.ids), ids=tuple(sorted(entry.ids)))


def real(zones: Iterable[int]) -> tuple[int, ...]:
    """Drops zones that do not exist: plugins may name any, and -1 for none (exporter spec, D-01)."""
    return tuple(zone for zone in zones if 0 <= zone <= machinefile.MAX_ZONE_ID)


def zones(
    machine: Machine,
    allocatable: Allocatable,
    pods: Iterable[PodResources],
    form: Form,
    excluded: frozenset[str] = NOTHING,
) -> tuple[Zone, ...]:
    """Zones by real ids, in ascending order (D-02), without excluded resources."""
    usable, used = _usable(machine, allocatable, form), _used(machine, allocatable, tuple(pods), form)
    found = (_zone(machine, zone, usable[zone.id], used[zone.id], form=form) for zone in machine.zones)
    return tuple(_without(zone, excluded) for zone in found)


def _without(zone: Zone, excluded: frozenset[str]) -> Zone:
    return structs.replace(
        zone, resources={name: each for name, each in zone.resources.items() if name not in excluded}
    )


def _usable(machine: Machine, allocatable: Allocatable, form: Form) -> Tally:
    """A resource with nothing left is listed with 0; memory blocks only by the updater."""
    found: Tally = {zone.id: Counter() for zone in machine.zones}
    for zone, cpus in by_zone(machine, allocatable.cpus).items():
        found[zone][resourcenames.CPU] = len(cpus)
    for block in allocatable.memory:
        for zone in block.zones if block.size or form == "nfd" else ():
            _add(found, zone, block.type, block.size)
    for entry in allocatable.devices:
        for zone in entry.zones or ():
            _add(found, zone, entry.resource, 0)
    for resource, places in _device_zones(allocatable.devices).items():
        for mask in places.values():
            for zone in masks.members(mask):
                _add(found, zone, resource, 1)
    return found


def _used(machine: Machine, allocatable: Allocatable, pods: tuple[PodResources, ...], form: Form) -> Tally:
    """Counts only allocatable resources: unhealthy devices and reserved CPUs are not part of them (D-28)."""
    found: Tally = {zone.id: Counter() for zone in machine.zones}
    for zone, cpus in by_zone(machine, {cpu for pod in pods for cpu in _cpus(pod)} & {*allocatable.cpus}).items():
        found[zone][resourcenames.CPU] = len(cpus)
    entries = [entry for pod in pods for container in pod.containers for entry in container.devices]
    known = _device_zones(allocatable.devices)
    for resource, each in {(entry.resource, each) for entry in entries for each in entry.ids}:
        # A device in several zones counts as used once in each (D-24).
        for zone in masks.members(known.get(resource, {}).get(each, 0)):
            _add(found, zone, resource, 1)
    _drain(found, _usable(machine, allocatable, form), [block for pod in pods for block in _memory(pod)])
    return found


def by_zone(machine: Machine, cpus: Iterable[int]) -> dict[int, list[int]]:
    """The CPUs by zone; CPUs that the machine does not have are skipped."""
    wanted, found = set(cpus), dict[int, list[int]]()
    for zone in machine.zones:
        here = sorted(cpu for core in zone.cores for cpu in core.cpus if cpu in wanted)
        if here:
            found[zone.id] = here
    return found


def _cpus(pod: PodResources) -> set[int]:
    """The CPUs of the pod as a whole include those of its containers (D-34)."""
    return {*pod.cpus, *(cpu for container in pod.containers for cpu in container.cpus)}


def _memory(pod: PodResources) -> list[MemoryEntry]:
    whole = {each.type for each in pod.memory}
    own = (each for container in pod.containers for each in container.memory if each.type not in whole)
    return [*pod.memory, *own]


def _drain(used: Tally, usable: Tally, blocks: list[MemoryEntry]) -> None:
    """A block fills its zones one after the other, as far as they have free memory (D-07, kubelet spec 5.5).

    Blocks with the fewest zones come first: they have no alternative."""
    for block in sorted(blocks, key=lambda block: len(block.zones)):
        left = block.size
        for zone in block.zones if block.size else ():
            free = usable[zone][block.type] - used[zone][block.type] if zone in usable else 0
            part = max(0, min(left, free))
            _add(used, zone, block.type, part)
            left -= part


def _device_zones(entries: Iterable[DeviceEntry]) -> dict[str, dict[str, int]]:
    """Zones by resource and id; a device in several zones has an entry for each."""
    found: dict[str, dict[str, int]] = {}
    for entry in entries:
        devices = found.setdefault(entry.resource, {})
        for each in entry.ids:
            devices[each] = devices.get(each, 0) | masks.of(real(entry.zones or ()))
    return found


def _add(tally: Tally, zone: int, resource: str, amount: int) -> None:
    if zone in tally:
        tally[zone][resource] += amount


def _zone(machine: Machine, zone: machines.Zone, usable: Counter[str], used: Counter[str], *, form: Form) -> Zone:
    """RTE's has CPUs always, even none (D-37); the updater's where it has nothing else, or some to allocate."""
    always = form == "rte" or not usable
    offered = ({resourcenames.CPU: 0} if always else {}) | usable
    present = _present(zone)
    amounts = {
        name: _amounts(name, max(amount, present.get(name, 0)), amount, amount - used[name])
        for name, amount in sorted(offered.items())
    }
    return Zone(id=zone.id, resources=amounts, costs=report.costs(zone, machine.zone_ids))


def _present(zone: machines.Zone) -> Mapping[str, int]:
    """Pages of every size (D-06)."""
    pages = {page.resource: page.total_bytes for page in zone.hugepages}
    cpus = sum(len(core.cpus) for core in zone.cores)
    return pages | {resourcenames.CPU: cpus, resourcenames.MEMORY: zone.memory}


def _amounts(resource: str, capacity: int, allocatable: int, available: int) -> Amounts:
    unit = report.MILLI if resource == resourcenames.CPU else 1
    return Amounts(unit * capacity, unit * allocatable, unit * max(0, available))
