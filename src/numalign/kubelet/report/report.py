"""The topology report of a node, as the agent publishes it: machine and managers' state in, NodeTopology out.

The agent and the simulator call `of`; `placement.reports` reads back every number. Zones carry the standard amounts for
any consumer. `facts` adds the managers' settings and the contents of their checkpoints, with which
`placement.commit.restorekubelet` can run the managers. What ended pods still hold counts as free, because the next
admission collects it (kubelet spec 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone, ReservedMemory
from numalign.api.attributes.podplacements import Holding, PodPlacement
from numalign.api.nrt import fingerprint, placementcodec
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.placementcodec import ContainerRef, Payload
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects import resourcenames
from numalign.kubelet import admission, holdings, start, versions
from numalign.kubelet.cpu.topology import discover
from numalign.kubelet.device import DeviceState, Inventory
from numalign.kubelet.machine import machine
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks


def facts(kubelet: Kubelet, state: KubeletState, pods: Iterable[PodPlacement]) -> NodeFacts:
    """All facts; those of a manager with policy none are omitted."""
    settings = kubelet.settings
    return NodeFacts(
        managers=_policies(settings),
        kubelet=_build(settings),
        reserved_cpus=kubelet.cpu.reserved if kubelet.cpu else None,
        reserved_memory=_reserved_memory(settings) if kubelet.memory else None,
        cores=_cores(kubelet.machine),
        default_cpus=state.cpu.default if state.cpu else None,
        memory=_memory_facts(state.memory) if state.memory else None,
        devices=_device_facts(kubelet, state.devices),
        placements=tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))),
    )


def _policies(settings: Settings) -> ManagerPolicies:
    return ManagerPolicies(
        cpu=settings.cpu_policy,
        cpu_options=settings.cpu_options,
        memory=settings.memory_policy,
        topology_options=settings.topology_options,
    )


def _build(settings: Settings) -> KubeletBuild:
    gates = {name: on for name, on in settings.feature_gates.items() if name in versions.GATES}
    return KubeletBuild(version=f"v{settings.minor}", feature_gates=gates)


def _reserved_memory(settings: Settings) -> ReservedMemory:
    return {each.zone: each.limits for each in settings.reserved_memory}


def _cores(machine: Machine) -> tuple[Core, ...]:
    found = (
        Core(cpus=tuple(sorted(core.cpus)), zone=zone.id, socket=core.socket, l3=core.uncore)
        for zone in machine.zones
        for core in zone.cores
    )
    return tuple(sorted(found, key=lambda core: core.cpus))


def _memory_facts(state: MemoryState) -> tuple[MemoryZone, ...]:
    return tuple(
        MemoryZone(
            zone=zone,
            assignments=memory.assignments,
            cells=memory.cells,
            free={kind: max(0, table.free) for kind, table in memory.tables.items()},
        )
        for zone, memory in sorted(state.zones.items())
    )


def _device_facts(kubelet: Kubelet, state: DeviceState) -> tuple[DeviceCount, ...]:
    found = (
        each
        for resource, inventory in sorted(kubelet.devices.inventories.items())
        for each in _classes(resource, inventory, state)
    )
    return tuple(found)


def _classes(resource: str, inventory: Inventory, state: DeviceState) -> Iterable[DeviceCount]:
    by_zones = holdings.classes(inventory.plugin.devices)
    if not by_zones:
        # A plugin without devices is registered all the same, and requests for its resource are refused.
        yield DeviceCount(resource=resource, zones=None, total=0, healthy=0, free=0)
    for zones in sorted(by_zones, key=lambda zones: -1 if zones is None else zones):
        healthy = {device.id for device in by_zones[zones] if device.healthy}
        free = len(healthy - state.in_use(resource))
        total = len(by_zones[zones])
        yield DeviceCount(resource=resource, zones=zones, total=total, healthy=len(healthy), free=free)


MILLI = 1000
UNKNOWN_VERSION = "unknown"


def of(
    node: str, kubelet: Kubelet, state: KubeletState, method: fingerprint.Method = fingerprint.Method.EXCLUSIVE
) -> NodeTopology:
    """The report on this node. Pods are listed if they hold something, or if the method signs every pod."""
    state = admission.collect(kubelet, state)
    return of_collected(
        node, kubelet, state, Pods(holdings.listed(kubelet, state), holdings.every(kubelet, state), method)
    )


class Pods(Struct, frozen=True):
    """All active pods: as the Pod Resources API lists them, and with everything that they hold."""

    listed: tuple[PodPlacement, ...]
    every: tuple[PodPlacement, ...]
    method: fingerprint.Method = fingerprint.Method.EXCLUSIVE


def of_collected(node: str, kubelet: Kubelet, state: KubeletState, pods: Pods) -> NodeTopology:
    """The same for a collected state, with placements that the caller already has."""
    named = tuple(pod for pod in pods.every if pod.holdings or pods.method is fingerprint.Method.ALL)
    return NodeTopology(
        node=node,
        manager=manager(kubelet),
        zones=tuple(_zone(kubelet, state, zone) for zone in kubelet.machine.zones),
        fingerprint=signature(pods.listed, pods.method),
        placement=payload(kubelet, pods.listed),
        facts=facts(kubelet, state, named),
    )


def with_capacities(topology: NodeTopology, machine: machine.Machine) -> NodeTopology:
    """Adds the capacities of the zones, for a node whose kubelet does not answer."""
    present = {zone.id: _present(zone) for zone in machine.zones}
    return structs.replace(topology, zones=tuple(_with_capacity(zone, present[zone.id]) for zone in topology.zones))


def undated(topology: NodeTopology) -> NodeTopology:
    """Drops the kubelet's version if it is unknown; readers then use the Node's, or assume one."""
    build = topology.facts.kubelet
    if build is None:
        return topology
    unknown = structs.replace(build, version=UNKNOWN_VERSION)
    return structs.replace(topology, facts=structs.replace(topology.facts, kubelet=unknown))


def _with_capacity(zone: Zone, present: Mapping[str, int]) -> Zone:
    had = {name: Amounts(amount, 0, 0) for name, amount in present.items() if amount}
    return structs.replace(zone, resources=dict(sorted({**had, **zone.resources}.items())))


def manager(kubelet: Kubelet) -> TopologyManager:
    settings = kubelet.settings
    # Under policy none the kubelet does not even parse its options.
    limit = settings.topology_options.get(start.MAX_ZONES) if settings.topology_policy != "none" else None
    most = start.DEFAULT_MAX_ZONES if limit is None else int(limit)
    return TopologyManager(settings.topology_policy, settings.topology_scope, most)


def signature(listed: Iterable[PodPlacement], method: fingerprint.Method) -> Fingerprint:
    """The fingerprint of the pods that the Pod Resources API lists, as upstream's publishers compute it (spec 4.6)."""
    judged = (((pod.namespace, pod.name), pod.is_exclusive) for pod in listed)
    return Fingerprint(fingerprint.of(fingerprint.included(judged, method)), method)


def payload(kubelet: Kubelet, listed: Iterable[PodPlacement]) -> Payload | None:
    """Upstream's placement codec, written where upstream writes it: containers in one zone each (exporter spec 4.7)."""
    if kubelet.settings.topology_policy != "single-numa-node":
        return None
    cpus = (kubelet.cpu.topology if kubelet.cpu else discover(kubelet.machine)).zones
    placed: dict[ContainerRef, int] = {}
    for pod in listed:
        for holding in pod.holdings if pod.is_exclusive else ():
            zone = _only_zone(holding, cpus)
            if zone is not None and holding.container != holdings.WHOLE_POD:
                placed[ContainerRef(pod.namespace, pod.name, holding.container)] = zone
    try:
        return placementcodec.encode(placed, len(kubelet.machine.zones))
    except placementcodec.PlacementError:
        return None  # zones with gaps in their ids, or a container in several


def costs(zone: machine.Zone, others: Iterable[int]) -> dict[int, int]:
    return {other: zone.distances[other] for other in others if other < len(zone.distances)}


def _only_zone(holding: Holding, cpus: Mapping[int, int]) -> int | None:
    """The zone of the first kind of resource that the container holds; -1, which the codec refuses, for several."""
    if holding.cpus:
        lowest = holding.cpus & -holding.cpus
        # None: a CPU that the machine does not have.
        return next((zone for zone, members in cpus.items() if members & lowest), placementcodec.UNKNOWN)
    places = (*(held.zones for held in holding.devices), *(block.zones for block in holding.memory))
    first = next((mask for mask in places if mask), None)
    if first is None:
        return None
    return masks.members(first)[0] if first.bit_count() == 1 else placementcodec.UNKNOWN


def _zone(kubelet: Kubelet, state: KubeletState, zone: machine.Zone) -> Zone:
    resources = {resourcenames.CPU: _cpus(kubelet, state, zone)}
    resources |= _memory(kubelet, state, zone) | _devices(kubelet, state, zone.id)
    return Zone(id=zone.id, resources=dict(sorted(resources.items())), costs=costs(zone, kubelet.machine.zone_ids))


def _cpus(kubelet: Kubelet, state: KubeletState, zone: machine.Zone) -> Amounts:
    """Without the static policy there is nothing to allocate exclusively (exporter spec 2.5)."""
    everything = MILLI * sum(len(core.cpus) for core in zone.cores)
    if not (kubelet.cpu and state.cpu and zone.cores):
        return Amounts(everything, 0, 0)
    members = kubelet.cpu.topology.zones[zone.id]
    allocatable, free = members & kubelet.cpu.allocatable, members & kubelet.cpu.available(state.cpu)
    return Amounts(everything, MILLI * allocatable.bit_count(), MILLI * free.bit_count())


def _memory(kubelet: Kubelet, state: KubeletState, zone: machine.Zone) -> dict[str, Amounts]:
    if not (kubelet.memory and state.memory):
        return {}
    present = _present(zone)
    tables = state.memory.zones[zone.id].tables
    return {
        kind: Amounts(present[kind], max(0, amount), max(0, tables[kind].free))
        for kind, amount in kubelet.memory.allocatable[zone.id].items()
    }


def _present(zone: machine.Zone) -> dict[str, int]:
    """Memory and huge pages, in bytes."""
    return {page.resource: page.total_bytes for page in zone.hugepages} | {resourcenames.MEMORY: zone.memory}


def _devices(kubelet: Kubelet, state: KubeletState, zone: int) -> dict[str, Amounts]:
    """A device on several zones is listed under each; `numalign.io/devices` counts it once (exporter spec 13.3)."""
    found = {}
    for resource, inventory in kubelet.devices.inventories.items():
        here = frozenset(each for each, zones in inventory.zones.items() if zones >> zone & 1)
        healthy = here & inventory.healthy
        if here:
            found[resource] = Amounts(len(here), len(healthy), len(healthy - state.devices.in_use(resource)))
    return found
