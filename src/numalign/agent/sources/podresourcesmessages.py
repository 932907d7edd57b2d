"""The podresources messages: what the kubelet's bytes say, as typed values.

`podresources.PodResourcesClient` hands in the answers of the calls. Lists are sorted here, because the kubelet's order
is a map's and equal answers should be equal; containers keep theirs, which is the pod's. Claims of dynamic resources
are not read.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.api.decode import protomessages
from numalign.api.decode.protomessages import Field, Message, Tree


class DeviceEntry(Struct, frozen=True):
    """A device on several zones comes as several entries with the same id (exporter spec 2.4)."""

    resource: str
    ids: tuple[str, ...]
    zones: tuple[int, ...] | None
    """None: the plugin said nothing about zones."""


class MemoryEntry(Struct, frozen=True, order=True):
    type: str
    size: int
    """Bytes of the whole block, however many zones it spans."""
    zones: tuple[int, ...]


class ContainerResources(Struct, frozen=True):
    name: str
    devices: tuple[DeviceEntry, ...] = ()
    cpus: tuple[int, ...] = ()
    """Exclusive ones only."""
    memory: tuple[MemoryEntry, ...] = ()


class PodResources(Struct, frozen=True):
    namespace: str
    name: str
    containers: tuple[ContainerResources, ...] = ()
    cpus: tuple[int, ...] = ()
    """Held by the pod as a whole, its containers' included; with `memory` new in 1.37 (exporter spec 2.4)."""
    memory: tuple[MemoryEntry, ...] = ()


class Allocatable(Struct, frozen=True):
    devices: tuple[DeviceEntry, ...] = ()
    cpus: tuple[int, ...] = ()
    memory: tuple[MemoryEntry, ...] = ()


ZONE: Final[Message] = {1: Field("id", "int")}
ZONES: Final[Message] = {1: Field("nodes", ZONE, many=True)}
DEVICES: Final[Message] = {
    1: Field("resource", "string"),
    2: Field("ids", "string", many=True),
    3: Field("topology", ZONES),
}
MEMORY: Final[Message] = {1: Field("type", "string"), 2: Field("size", "uint"), 3: Field("topology", ZONES)}
CONTAINER: Final[Message] = {
    1: Field("name", "string"),
    2: Field("devices", DEVICES, many=True),
    3: Field("cpus", "int", many=True),
    4: Field("memory", MEMORY, many=True),
}
POD: Final[Message] = {
    1: Field("name", "string"),
    2: Field("namespace", "string"),
    3: Field("containers", CONTAINER, many=True),
    4: Field("cpus", "int", many=True),
    5: Field("memory", MEMORY, many=True),
}
ALLOCATABLE: Final[Message] = {
    1: Field("devices", "bytes", many=True),
    2: Field("cpus", "int", many=True),
    3: Field("memory", MEMORY, many=True),
}
LIST_ANSWER: Final[Message] = {1: Field("pods", "bytes", many=True)}
GET_ANSWER: Final[Message] = {1: Field("pod", POD)}
GET_REQUEST: Final[Message] = {1: Field("name", "string"), 2: Field("namespace", "string")}


class Reader:
    """Remembers the parts of the last answers by their bytes: a second later, most of them are the same.

    The kubelet sends them in any order, so whole answers are seldom the same."""

    def __init__(self) -> None:
        self._pods: dict[bytes, PodResources] = {}
        self._devices: dict[bytes, DeviceEntry] = {}
        self._offer: tuple[bytes, Allocatable] | None = None

    def pods(self, answer: bytes) -> tuple[PodResources, ...]:
        raw: list[bytes] = protomessages.read(answer, LIST_ANSWER).get("pods", [])
        self._pods = {each: self._pods.get(each) or pod(protomessages.read(each, POD)) for each in raw}
        return tuple(sorted(self._pods.values(), key=lambda each: (each.namespace, each.name)))

    def allocatable(self, answer: bytes) -> Allocatable:
        if self._offer is not None and self._offer[0] == answer:
            return self._offer[1]
        tree = protomessages.read(answer, ALLOCATABLE)
        raw: list[bytes] = tree.get("devices", [])
        self._devices = {each: self._devices.get(each) or _device(protomessages.read(each, DEVICES)) for each in raw}
        offered = Allocatable(tuple(sorted(self._devices.values(), key=_place)), _cpus(tree), _memory(tree))
        self._offer = answer, offered
        return offered


def got(answer: bytes) -> PodResources:
    return pod(protomessages.read(answer, GET_ANSWER).get("pod", {}))


def pod(tree: Tree) -> PodResources:
    return PodResources(
        namespace=tree.get("namespace", ""),
        name=tree.get("name", ""),
        containers=tuple(map(_container, tree.get("containers", ()))),
        cpus=_cpus(tree),
        memory=_memory(tree),
    )


def _container(tree: Tree) -> ContainerResources:
    return ContainerResources(name=tree.get("name", ""), devices=_devices(tree), cpus=_cpus(tree), memory=_memory(tree))


def _cpus(tree: Tree) -> tuple[int, ...]:
    return tuple(sorted(tree.get("cpus", ())))


def _devices(tree: Tree) -> tuple[DeviceEntry, ...]:
    return tuple(sorted(map(_device, tree.get("devices", ())), key=_place))


def _device(tree: Tree) -> DeviceEntry:
    zones = _zones(tree["topology"]) if "topology" in tree else None
    return DeviceEntry(tree.get("resource", ""), tuple(sorted(tree.get("ids", ()))), zones)


def _place(entry: DeviceEntry) -> tuple[str, tuple[str, ...], tuple[int, ...]]:
    return entry.resource, entry.ids, entry.zones or ()


def _memory(tree: Tree) -> tuple[MemoryEntry, ...]:
    return tuple(sorted(map(_block, tree.get("memory", ()))))


def _block(tree: Tree) -> MemoryEntry:
    return MemoryEntry(tree.get("type", ""), tree.get("size", 0), _zones(tree.get("topology", {})))


def _zones(topology: Tree) -> tuple[int, ...]:
    # Zone 0 is the default of its type and does not travel (exporter spec 2.2).
    return tuple(sorted(node.get("id", 0) for node in topology.get("nodes", ())))
