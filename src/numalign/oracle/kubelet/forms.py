"""The forms in which recordings write machines, pods, hints, memory blocks and operations, and their conversions.

Every family reads its inputs and writes its answers in these forms, so that an answer can be compared with the
recording field by field. A value that a recording omits is UNSET here, never None. Quantities stay text, so that a case
can be written exactly as it was read. Cases name a topology of the table beside them (`topologies.json`), and add
memory and devices."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from numalign.api.decode import cpuset, quantity
from numalign.api.objects import pod as pods
from numalign.api.objects.meta import ObjectMeta
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.machine import machine as machines
from numalign.kubelet.memory import state as memorystate
from numalign.kubelet.refusals import Undecided
from numalign.kubelet.topologymanager import hints as topologyhints
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.merge import HintMap, Hints

T = TypeVar("T")
A = TypeVar("A", bound=Struct)

# The kubelet keeps zone ids in a 64-bit word (kubelet spec, notation).
ZoneId = Annotated[int, Meta(ge=0, le=63)]
Zones = tuple[ZoneId, ...]


class Hint(Struct, frozen=True):
    mask: Zones | None
    preferred: bool

    @property
    def model(self) -> topologyhints.Hint:
        return topologyhints.Hint(None if self.mask is None else masks.of(self.mask), self.preferred)


RecordedHints = dict[str, tuple[Hint, ...] | None]

NO_HINT = Hint(None, False)
"""The topology manager's answer for a container without a stored hint."""


class Block(Struct, frozen=True):
    numa: Zones
    type: str
    size: int


class ZoneState(Struct, frozen=True):
    assignments: int
    cells: Zones
    free: dict[str, int]


def completed(answer: type[A], given: Struct, **answers: Any) -> A:
    """The recorded inputs, completed with the model's answers."""
    return answer(**{**structs.asdict(given), **answers})


def unless_empty(value: T) -> T | UnsetType:
    """Recordings omit empty texts, lists and objects in most places."""
    return value if value else UNSET


def hint(model: topologyhints.Hint) -> Hint:
    return _written(*model)


# Cached: a large answer repeats the same few hundred hints.
@lru_cache(maxsize=1 << 12)
def _written(mask: masks.Mask | None, preferred: bool) -> Hint:
    return Hint(None if mask is None else masks.members(mask), preferred)


def hint_map(model: HintMap | None) -> RecordedHints | None:
    if model is None:
        return None
    return {resource: None if hints is None else _listed(hints) for resource, hints in model.items()}


def _listed(hints: Hints) -> tuple[Hint, ...]:
    if isinstance(hints, topologyhints.HintList):
        preferred = map(hints.preferred.__contains__, hints.masks)
        return (*map(_written, hints.masks, preferred), *(_written(None, each) for each in sorted(hints.nil)))
    raise Undecided("hints over so many zones are not listed one by one", hints.count)


def cpus(model: int | None) -> str | None:
    return None if model is None else cpuset.text(model)


def blocks(model: Iterable[memorystate.Block]) -> tuple[Block, ...]:
    """Sorted by memory type."""
    return tuple(Block(masks.members(each.zones), each.kind, each.size) for each in sorted(model))


def zone_states(model: memorystate.MemoryState) -> dict[str, ZoneState]:
    return {str(zone): _zone_state(memory) for zone, memory in model.zones.items()}


def _zone_state(memory: memorystate.ZoneMemory) -> ZoneState:
    free = {kind: table.free for kind, table in memory.tables.items()}
    return ZoneState(memory.assignments, masks.members(memory.cells), free)


def totals(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum over all zones by memory type: the amount that the node must reserve."""
    summed: dict[str, int] = {}
    for each in amounts:
        for kind, amount in each.items():
            summed[kind] = summed.get(kind, 0) + amount
    return summed


class ManagerOp(Struct, frozen=True, kw_only=True, tag_field="op"):
    pod: str


class PodHints(ManagerOp, frozen=True, kw_only=True, tag="pod_hints"):
    pass


class ContainerHints(ManagerOp, frozen=True, kw_only=True, tag="hints"):
    container: str


class Allocate(ManagerOp, frozen=True, kw_only=True, tag="allocate"):
    container: str
    affinity: Hint


Amounts = dict[str, str]


class Requirements(Struct, frozen=True, kw_only=True):
    requests: Amounts | UnsetType = UNSET
    limits: Amounts | UnsetType = UNSET

    @property
    def model(self) -> pods.ResourceRequirements:
        return pods.ResourceRequirements(requests=_parsed(self.requests), limits=_parsed(self.limits))


class Container(Requirements, frozen=True, kw_only=True):
    name: str
    restartable: bool | UnsetType = UNSET
    """Whether an init container is a sidecar."""


class Pod(Struct, frozen=True, kw_only=True):
    uid: str
    pod_resources: Requirements | UnsetType = UNSET
    init: tuple[Container, ...] | UnsetType = UNSET
    containers: tuple[Container, ...]

    @property
    def model(self) -> pods.Pod:
        spec = pods.PodSpec(
            init_containers=tuple(map(_container, self.init or ())),
            containers=tuple(map(_container, self.containers)),
            resources=(self.pod_resources or Requirements()).model,
        )
        return pods.Pod(metadata=ObjectMeta(uid=self.uid, name=self.uid), spec=spec)


def demand(pod: Pod) -> PodDemand:
    """The pod's demand for a single manager. These cases were recorded with all gates at their defaults."""
    return demands.of(pod.model, Reading())


def by_uid(recorded: Iterable[Pod]) -> dict[str, PodDemand]:
    return {pod.uid: demand(pod) for pod in recorded}


def _container(recorded: Container) -> pods.Container:
    restart_policy = "Always" if recorded.restartable is True else ""
    return pods.Container(name=recorded.name, restart_policy=restart_policy, resources=recorded.model)


def _parsed(amounts: Amounts | UnsetType) -> pods.ResourceList:
    return {name: quantity.parse(text) for name, text in (amounts or {}).items()}


class Core(Struct, frozen=True, forbid_unknown_fields=True):
    socket: int
    uncore: int | None
    cpus: tuple[int, ...]


class NumaNode(Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    distances: tuple[int, ...]
    cores: tuple[Core, ...]


class Topology(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    num_cpus: int
    num_sockets: int
    numa: tuple[NumaNode, ...]


Topologies = Mapping[str, Topology]


class HugePages(Struct, frozen=True):
    page_size_kb: int
    num_pages: int


class MemoryNode(Struct, frozen=True):
    id: int
    memory: int
    hugepages: tuple[HugePages, ...]


class Device(Struct, frozen=True):
    id: str
    healthy: bool
    numa: Zones | None


class Plugin(Struct, frozen=True):
    preferred_allocation: bool
    devices: tuple[Device, ...]


Plugins = dict[str, Plugin]


def machine(topology: Topology, memory: Iterable[MemoryNode] = (), devices: Plugins | None = None) -> machines.Machine:
    amounts = {node.id: _zone(node) for node in memory}
    zones = tuple(_with_cores(amounts.get(node.id, machines.Zone(node.id)), node) for node in topology.numa)
    return machines.Machine(topology.name, zones, plugins(devices or {}))


def memory_only(nodes: Iterable[MemoryNode]) -> machines.Machine:
    return machines.Machine("recorded", tuple(map(_zone, nodes)))


def devices_only(zones: Zones, devices: Plugins) -> machines.Machine:
    return machines.Machine("recorded", tuple(map(machines.Zone, zones)), plugins(devices))


def plugins(recorded: Plugins) -> dict[str, machines.DevicePlugin]:
    return {
        resource: machines.DevicePlugin(
            tuple(machines.Device(device.id, device.numa, device.healthy) for device in plugin.devices),
            plugin.preferred_allocation,
        )
        for resource, plugin in recorded.items()
    }


def _zone(node: MemoryNode) -> machines.Zone:
    pages = tuple(machines.HugePages(page.page_size_kb, page.num_pages) for page in node.hugepages)
    return machines.Zone(node.id, memory=node.memory, hugepages=pages)


def _with_cores(zone: machines.Zone, node: NumaNode) -> machines.Zone:
    cores = tuple(machines.Core(core.socket, core.cpus, core.uncore) for core in node.cores)
    return machines.Zone(zone.id, cores, zone.memory, zone.hugepages, node.distances)
