"""The machine behind a report in direct mode, if its node is in that mode.

`read` calls it once for the static part of a report. The report says what there is; what is free follows from the
decisions on the node's pods. docs/concepts/direct-mode.md has the conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from numalign.api.attributes import directmode
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.directmode import DeviceMinors
from numalign.api.caches import BoundedCache
from numalign.api.decode import cpuset
from numalign.api.nrt.nodetopology import NodeTopology, Zone
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node
from numalign.kubelet.cpu.topology import discover
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from numalign.placement.columns import deviceshares
from numalign.placement.columns.directmachine import DirectMachine, DirectTerms, union
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.reports import hardware, supplies
from numalign.placement.reports.hardware import Cores

UNMANAGED: Final = ("none", "None", "none")
_SHARED: Final[BoundedCache[object, DirectMachine]] = BoundedCache(hardware.MAKES)


def machine(
    topology: NodeTopology, settings: Settings, cores: Cores | None, node: Node | None, noted: set[Assumption]
) -> DirectMachine | None:
    """None: the node is in predict mode. An advertisement that cannot be followed is added to `noted`."""
    facts = topology.facts
    if facts.mode is None:
        return None
    managers = settings.cpu_policy, settings.memory_policy, settings.topology_policy
    if managers != UNMANAGED or "cpus" not in facts.mode.features or cores is None or facts.cores is None:
        noted.add(Assumption.DIRECT_NOT_POSSIBLE)
        return None
    features, labels = facts.mode.features, node.metadata.labels if node is not None else {}
    zones = supplies.zone_ids(topology)
    allocatable = _without(facts.cores, facts.reserved_cpus or 0)
    memory = _memory(topology)
    devices = _devices(facts.minors or (), zones) if "devices" in features else ()
    table = facts.shares if "devices" in features else None
    # Equal nodes share one machine, so that a decision for one of them is known for all.
    key = zones, allocatable, memory, devices, table, features, tuple(labels.items())
    found = _SHARED.get(key)
    if found is None:
        found = DirectMachine(
            zones=zones,
            topology=discover(Machine("", hardware.zones_with_cores(zones, allocatable))),
            memory=memory,
            devices=devices,
            stock=deviceshares.stock(table, zones),
            terms=DirectTerms(features, directmode.defaults(labels)),
        )
    return _SHARED.keep(key, found)


def _without(cores: Sequence[Core], reserved: int) -> tuple[Core, ...]:
    left = [structs.replace(core, cpus=cpuset.members(cpuset.of(core.cpus) & ~reserved)) for core in cores]
    return tuple(core for core in left if core.cpus)


def _memory(topology: NodeTopology) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Capacities without what is reserved; hugepages are part of the zone's memory."""
    names = sorted({name for zone in topology.zones for name in zone.resources if supplies.is_memory(name)})
    reserved = topology.facts.reserved_memory or {}
    return tuple(
        (name, tuple(max(0, _present(zone, name) - reserved.get(zone.id, {}).get(name, 0)) for zone in topology.zones))
        for name in names
    )


def _present(zone: Zone, name: str) -> int:
    amounts = {kind: each.capacity for kind, each in zone.resources.items() if supplies.is_memory(kind)}
    if name != resourcenames.MEMORY:
        return amounts.get(name, 0)
    return amounts.get(name, 0) - sum(amount for kind, amount in amounts.items() if kind != name)


def _devices(minors: Sequence[DeviceMinors], zones: tuple[int, ...]) -> tuple[tuple[str, tuple[int, ...], int], ...]:
    found = []
    for resource in sorted({each.resource for each in minors}):
        own = [each for each in minors if each.resource == resource]
        by_zone = [union(each.minors for each in own if each.zones >> zone & 1) for zone in zones]
        loose = union(each.minors for each in own) & ~union(by_zone)
        found.append((resource, tuple(by_zone), loose))
    return tuple(found)
