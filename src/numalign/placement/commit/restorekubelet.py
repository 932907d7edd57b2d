"""Restores a node's kubelet from its report: the managers themselves, for what numbers cannot decide.

`committer` calls `restored` where engine spec 7 says that ids decide. Only reports of our agent say enough; for any
other, and for one that contradicts itself, there is no model. `admission.align` on the result answers as the node
would. CPUs and memory are the real ones; amounts come from the published checkpoints, holdings from the placements.
Hints that were stored when pods were admitted and leftovers of init containers are not restored, because only the pod
itself ever uses them. Totals of the node are not restored, because the engine checks them itself.

Devices have made-up ids, because a report counts them by zone set. Devices of one class are alike to the device
manager, so any of them can stand for any other. What is kept is how many are free and healthy, and that two containers
of a pod may hold the very same device one after the other (kubelet spec 7.3). Ids sort by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, structs

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import MemoryZone
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.nodetopology import Zone as ReportedZone
from numalign.api.objects import resourcenames
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec
from numalign.kubelet import demand, start
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Ids
from numalign.kubelet.holdings import WHOLE_POD
from numalign.kubelet.machine.machine import Device, DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.memory.state import Block, MemoryState, Table, ZoneMemory
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.reports import hardware, nodesettings

Place = tuple[str, int | None]
"""A device class: its resource and its zones."""

MOST_DEVICES = 1 << 16
"""The most devices of one node, of all resources together; more than any real node has."""


class Unaccounted(Exception):
    """Pods hold more devices than there are, or there are more than can be."""


class Devices:
    """The devices of one node, handed out to the pods that hold them."""

    def __init__(self, classes: Iterable[DeviceCount]) -> None:
        self._classes = {(each.resource, each.zones): each for each in classes}
        if sum(each.total for each in self._classes.values()) > MOST_DEVICES:
            raise Unaccounted("too many devices")
        self._names = {place: f"{number:04}" for number, place in enumerate(self._classes)}
        self._taken: dict[Place, list[str]] = {place: [] for place in self._classes}
        self._known: dict[tuple[Place, str], str] = {}

    def give(self, held: HeldDevices, before: Ids) -> Ids:
        """Ids for the devices of a container. `before`: ids of the resource that other containers of the pod have."""
        place = held.resource, held.zones
        if held.ids:
            return frozenset(self._called(place, name) for name in held.ids)
        fresh = min(held.count, self._left(place))
        # Counts do not show whether a container reuses devices of an earlier one. If no others are left, it does.
        shared = sorted(before & frozenset(self._taken.get(place, ())))[: held.count - fresh]
        if fresh + len(shared) < held.count:
            raise Unaccounted(held.resource)
        return frozenset(shared).union(self._next(place) for _ in range(fresh))

    def plugins(self) -> dict[str, DevicePlugin]:
        """All registered plugins with their devices."""
        found: dict[str, list[Device]] = {}
        for place, each in self._classes.items():
            found.setdefault(each.resource, []).extend(self._devices(place, each))
        return {resource: DevicePlugin(tuple(devices)) for resource, devices in found.items()}

    def _called(self, place: Place, name: str) -> str:
        if (place, name) not in self._known:
            if not self._left(place):
                raise Unaccounted(place[0])
            self._known[place, name] = self._next(place)
        return self._known[place, name]

    def _left(self, place: Place) -> int:
        """Number of devices of the class that are neither free nor given out; unlimited for an unregistered class."""
        each = self._classes.get(place)
        return each.total - each.free - len(self._taken[place]) if each else MOST_DEVICES

    def _next(self, place: Place) -> str:
        taken = self._taken.setdefault(place, [])
        taken.append(f"{self._names.get(place, 'gone')}-{len(taken):06}")
        return taken[-1]

    def _devices(self, place: Place, each: DeviceCount) -> Iterable[Device]:
        """Devices that pods hold come first, healthy as far as the class allows, then free and unhealthy ones."""
        zones = None if each.zones is None else masks.members(each.zones)
        held = len(self._taken[place])
        for number in range(each.total):
            used = number < held
            healthy = number < each.healthy - each.free if used else number < held + each.free
            yield Device(f"{self._names[place]}-{number:06}", zones, healthy)


Holders = Mapping[str, PodPlacement]
"""Pod identity to what the pod holds."""


class RestoredPods(Struct, frozen=True):
    """The pods of a node, by the identity under which the managers have them."""

    active: Mapping[str, Pod]
    placed: Holders


def residents(placements: Iterable[PodPlacement], pods: Mapping[str, Pod]) -> RestoredPods:
    """Every pod in the report, with its spec where it is known."""
    active: dict[str, Pod] = {}
    placed: dict[str, PodPlacement] = {}
    for each in placements:
        known = pods.get(f"{each.namespace}/{each.name}")
        # Another pod under the same name is not this one.
        same = known is not None and each.uid in ("", known.metadata.uid)
        pod = known if known is not None and same else _stand_in(each)
        active[demand.identity(pod)] = pod
        placed[demand.identity(pod)] = each
    return RestoredPods(active, placed)


def device_state(placed: Holders, devices: Devices) -> DeviceState:
    held: dict[str, dict[str, dict[str, Ids]]] = {}
    for uid, pod in placed.items():
        before: dict[str, Ids] = {}
        for holding in pod.holdings:
            own = held.setdefault(uid, {}).setdefault(holding.container, {})
            for each in holding.devices:
                ids = devices.give(each, before.get(each.resource, frozenset()))
                own[each.resource] = own.get(each.resource, frozenset()) | ids
                before[each.resource] = before.get(each.resource, frozenset()) | ids
    return DeviceState(pods={uid: _with_devices(containers) for uid, containers in held.items()})


def of(kubelet: Kubelet, facts: NodeFacts, known: RestoredPods, devices: DeviceState) -> KubeletState:
    return KubeletState(
        devices=devices,
        cpu=_cpus(facts.default_cpus or 0, known.placed) if kubelet.cpu else None,
        memory=_memory(kubelet, facts, known.placed) if kubelet.memory else None,
        active=known.active,
    )


def _with_devices(containers: Mapping[str, Mapping[str, Ids]]) -> dict[str, Mapping[str, Ids]]:
    return {name: held for name, held in containers.items() if held}


def _cpus(default: int, placed: Holders) -> CPUState:
    return CPUState(
        default=default,
        assignments={
            uid: own
            for uid, pod in placed.items()
            if (own := {each.container: each.cpus for each in _of_containers(pod) if each.cpus})
        },
        pods={uid: whole.cpus for uid, pod in placed.items() if (whole := _whole(pod)) and whole.cpus},
    )


def _memory(kubelet: Kubelet, facts: NodeFacts, placed: Holders) -> MemoryState:
    allocatable = kubelet.memory.allocatable if kubelet.memory else {}
    zones = {
        each.zone: ZoneMemory(
            cells=each.cells,
            tables={
                kind: Table(each.free[kind], amount - each.free[kind])
                for kind, amount in allocatable[each.zone].items()
            },
            assignments=each.assignments,
        )
        for each in facts.memory or ()
    }
    blocks = {
        uid: own
        for uid, pod in placed.items()
        if (own := {each.container: _blocks(each.memory) for each in _of_containers(pod) if each.memory})
    }
    whole = {uid: _blocks(whole.memory) for uid, pod in placed.items() if (whole := _whole(pod)) and whole.memory}
    return MemoryState(zones=zones, blocks=blocks, pods=whole)


def _blocks(memory: Iterable[MemoryBlock]) -> tuple[Block, ...]:
    return tuple(Block(each.type, each.zones, each.size) for each in memory)


def _of_containers(pod: PodPlacement) -> Iterable[Holding]:
    return (holding for holding in pod.holdings if holding.container != WHOLE_POD)


def _whole(pod: PodPlacement) -> Holding | None:
    return next((holding for holding in pod.holdings if holding.container == WHOLE_POD), None)


def _stand_in(placed: PodPlacement) -> Pod:
    containers = tuple(Container(name=holding.container) for holding in _of_containers(placed))
    metadata = ObjectMeta(namespace=placed.namespace, name=placed.name, uid=placed.uid)
    return Pod(metadata=metadata, spec=PodSpec(containers=containers))


HIGHEST_ZONE = 63
"""The kubelet keeps zone sets in 64-bit masks."""
HIGHEST_SOCKET = 4095
"""Sockets become bits of masks, too; real ids stay far below."""


class RestoredKubelet(NamedTuple):
    """A restored kubelet and its state."""

    kubelet: Kubelet
    state: KubeletState


class Incomplete(Exception):
    """The report is incomplete or contradicts itself."""


def restored(topology: NodeTopology, pods: Mapping[str, Pod]) -> RestoredKubelet | None:
    """The node's kubelet with the pods of the report; None if the report is incomplete.

    `pods` has the specs by namespace/name, as far as they are known; a pod without one is represented by the names of
    its containers, which is all that matters to others."""
    try:
        return _restored(topology, pods)
    except (Incomplete, Unaccounted, StartRefusal, Undecided):
        return None


def _restored(topology: NodeTopology, pods: Mapping[str, Pod]) -> RestoredKubelet:
    facts, noted = topology.facts, set[Assumption]()
    settings = nodesettings.read(topology, None, noted)
    _require(not noted and facts.placements is not None and facts.devices is not None)
    devices = Devices(facts.devices or ())
    known = residents(facts.placements or (), pods)
    held = device_state(known.placed, devices)
    machine = _machine(topology, settings, devices.plugins())
    kubelet = start.start(machine, _with_reservations(settings, facts))
    _require_holdings(kubelet, [holding for pod in known.placed.values() for holding in pod.holdings], facts)
    return RestoredKubelet(kubelet, of(kubelet, facts, known, held))


def _machine(topology: NodeTopology, settings: Settings, plugins: Mapping[str, DevicePlugin]) -> Machine:
    published, zones = topology.facts.cores, tuple(zone.id for zone in topology.zones)
    _require(published is not None and zones and zones[-1] <= HIGHEST_ZONE)
    cores = published or ()
    _require(all(core.zone in zones and core.socket <= HIGHEST_SOCKET for core in cores))
    bare = hardware.zones_with_cores(zones, cores)
    memory = {zone.zone: zone for zone in topology.facts.memory or ()}
    static = settings.memory_policy == "Static"
    _require(not static or sorted(memory) == list(zones))
    reserved = topology.facts.reserved_memory or {}
    furnished = (
        _with_memory(zone, reported, memory[zone.id], reserved.get(zone.id, {})) if static else zone
        for zone, reported in zip(bare, topology.zones, strict=True)
    )
    measured = (_with_distances(*pair, zones) for pair in zip(furnished, topology.zones, strict=True))
    return Machine(topology.node, tuple(measured), plugins)


def _with_memory(zone: Zone, reported: ReportedZone, table: MemoryZone, reserved: Mapping[str, int]) -> Zone:
    """The zone with the memory from which the start computes the reported allocatable amounts (kubelet spec 6.1)."""
    _require(all(kind in reported.resources for kind in table.free) and resourcenames.MEMORY in table.free)
    total = {kind: reported.resources[kind].allocatable + reserved.get(kind, 0) for kind in table.free}
    pages = tuple(_pages(kind, amount) for kind, amount in total.items() if kind != resourcenames.MEMORY)
    ordinary = total[resourcenames.MEMORY] + sum(page.total_bytes for page in pages)
    return structs.replace(zone, memory=ordinary, hugepages=pages)


def _pages(kind: str, amount: int) -> HugePages:
    try:
        size = quantity.parse(kind.removeprefix(resourcenames.HUGEPAGES_PREFIX)).value
    except quantity.QuantityError:
        raise Incomplete(kind) from None
    _require(size >= 1024)
    pages = HugePages(size // 1024, amount // size)
    _require(pages.resource == kind and pages.total_bytes == amount)
    return pages


def _with_distances(zone: Zone, reported: ReportedZone, zones: tuple[int, ...]) -> Zone:
    """The zone with distances by zone id. If one is missing, none is set, and a kubelet that needs them fails."""
    costs = reported.costs
    complete = all(to in costs for to in zones)
    return structs.replace(zone, distances=tuple(costs.get(to, 0) for to in range(zones[-1] + 1)) if complete else ())


def _with_reservations(settings: Settings, facts: NodeFacts) -> Settings:
    """Reservations that satisfy the sums which the managers check at start; node totals are not published."""
    cpus, reserved = facts.reserved_cpus or 0, facts.reserved_memory or {}
    totals = {resourcenames.CPU: 1000 * cpus.bit_count()}
    for limits in reserved.values():
        totals |= {kind: totals.get(kind, 0) + amount for kind, amount in limits.items()}
    return structs.replace(
        settings,
        reserved_cpus=cpus,
        reserved_memory=tuple(MemoryReservation(zone, limits) for zone, limits in sorted(reserved.items())),
        reserved=totals,
    )


def _require_holdings(kubelet: Kubelet, holdings: list[Holding], facts: NodeFacts) -> None:
    """Raises `Incomplete` if pods hold what does not exist, or if more is free than exists."""
    if kubelet.cpu:
        cpus = kubelet.cpu.topology.cpus
        _require(facts.default_cpus is not None and not facts.default_cpus & ~cpus)
        _require(not any(holding.cpus & ~cpus for holding in holdings))
    if kubelet.memory:
        every, allocatable = kubelet.machine.all_zones, kubelet.memory.allocatable
        for zone in facts.memory or ():
            _require(zone.cells and not zone.cells & ~every)
            _require(all(zone.free[kind] <= amount for kind, amount in allocatable[zone.zone].items()))
        blocks = [block for holding in holdings for block in holding.memory]
        _require(all(block.zones and not block.zones & ~every for block in blocks))
        _require(all(block.type in kubelet.machine.memory_types for block in blocks))


def _require(condition: object) -> None:
    if not condition:
        raise Incomplete
