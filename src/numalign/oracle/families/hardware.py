"""Machines as recordings describe them: topologies by name, memory by node, devices by resource.

Cases name a topology of the table beside them (`topologies.json`) and add memory and devices; `machine` combines them
for the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from numalign.kubelet import machine as machines
from numalign.oracle.families.encodings import Zones


class Core(Struct, frozen=True, forbid_unknown_fields=True):
    socket: int
    uncore: int | None
    cpus: tuple[int, ...]


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    distances: tuple[int, ...]
    cores: tuple[Core, ...]


class Topology(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    num_cpus: int
    num_sockets: int
    numa: tuple[Node, ...]


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


def _with_cores(zone: machines.Zone, node: Node) -> machines.Zone:
    cores = tuple(machines.Core(core.socket, core.cpus, core.uncore) for core in node.cores)
    return machines.Zone(zone.id, cores, zone.memory, zone.hugepages, node.distances)
