"""A node's state as a table of resources and zones: what is free, and which pod holds the rest.

The command line prints it and explanations count with it. Rows are what the managers keep per zone; a resource that no
manager pins has a total only. Totals are node allocatable less the requests of the node's pods, as the scheduler
counts. Amounts are CPUs, bytes and devices; totals of cpu are milli-CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_

from msgspec import Struct, field

from numalign.api.objects import requests, resourcenames
from numalign.kubelet import predicates
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.cpu.static import StaticCPUs
from numalign.kubelet.device import DeviceState, Ids, Inventory
from numalign.kubelet.memory.state import Block, MemoryState, Table
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.mask import Mask

NO_ZONE: Mask = 0


class Cell(Struct, frozen=True):
    """One resource in one zone set. `holders` is pod uid to amount."""

    allocatable: int
    free: int
    holders: Mapping[str, int] = field(default_factory=dict)


class Total(Struct, frozen=True):
    """One resource of the whole node."""

    allocatable: int
    free: int


Row = Mapping[Mask, Cell]


class ZoneTable(Struct, frozen=True):
    """Resource to zone set to cell, cpu and memory first, and resource to node total.

    A zone set is one zone, except for devices that belong to several, or to none (`NO_ZONE`)."""

    rows: Mapping[str, Row]
    totals: Mapping[str, Total]


def of(kubelet: Kubelet, state: KubeletState) -> ZoneTable:
    """The table of what the managers hold now; leftovers of refused pods count until `admission.collect`."""
    return ZoneTable(dict(_rows(kubelet, state)), _totals(kubelet, state))


def _rows(kubelet: Kubelet, state: KubeletState) -> Iterator[tuple[str, Row]]:
    if kubelet.cpu and state.cpu:
        yield resourcenames.CPU, _cpus(kubelet.cpu, state.cpu)
    if state.memory:
        for kind in sorted(kubelet.machine.memory_types, key=lambda kind: (kind != resourcenames.MEMORY, kind)):
            yield kind, _memory(state.memory, kind)
    for resource, inventory in kubelet.devices.inventories.items():
        yield resource, _devices(resource, inventory, state.devices)


def _cpus(manager: StaticCPUs, state: CPUState) -> Row:
    by_zone = manager.topology.by_zone
    allocatable, free = by_zone(manager.allocatable), by_zone(manager.available(state))
    held = {uid: by_zone(reduce(or_, cpus.values(), 0)) for uid, cpus in state.assignments.items()}
    held |= {uid: by_zone(cpus) for uid, cpus in state.pods.items()}
    return {zone: Cell(allocatable[zone], free[zone], _in_zone(held, zone)) for zone in allocatable}


def _memory(state: MemoryState, kind: str) -> Row:
    tables = {1 << zone: memory.tables.get(kind, Table(0)) for zone, memory in state.zones.items()}
    unclaimed = {zone: table.reserved for zone, table in tables.items()}
    held = {
        uid: _spread([block for block in _blocks(state, uid) if block.kind == kind], unclaimed) for uid in state.blocks
    }
    return {zone: Cell(table.free + table.reserved, table.free, _in_zone(held, zone)) for zone, table in tables.items()}


def _blocks(state: MemoryState, uid: str) -> tuple[Block, ...]:
    if uid in state.pods:
        return state.pods[uid]
    return tuple(block for blocks in state.blocks[uid].values() for block in blocks)


def _spread(blocks: list[Block], unclaimed: dict[Mask, int]) -> dict[Mask, int]:
    """A pod's amount by zone. Inside a group only the sum means anything; it is read as the kubelet drains zones."""
    amounts: dict[Mask, int] = {}
    for block in blocks:
        left = block.size
        for zone in (1 << each for each in masks.members(block.zones)):
            part = min(left, unclaimed.get(zone, 0))
            left -= part
            unclaimed[zone] = unclaimed.get(zone, 0) - part
            amounts[zone] = amounts.get(zone, 0) + part
    return amounts


def _devices(resource: str, inventory: Inventory, state: DeviceState) -> Row:
    def count(ids: Ids) -> dict[Mask, int]:
        counts: dict[Mask, int] = {}
        for each in ids:
            zones = inventory.zones.get(each, NO_ZONE)
            counts[zones] = counts.get(zones, 0) + 1
        return counts

    every = sorted({inventory.zones.get(each, NO_ZONE) for each in inventory.by_id}, key=masks.width)
    allocatable, free = count(inventory.healthy), count(inventory.healthy - state.in_use(resource))
    held = {uid: count(state.held_by_pod(uid, resource)) for uid in state.pods}
    return {zones: Cell(allocatable.get(zones, 0), free.get(zones, 0), _in_zone(held, zones)) for zones in every}


def _in_zone(held: Mapping[str, Mapping[Mask, int]], zone: Mask) -> dict[str, int]:
    return {uid: amounts[zone] for uid, amounts in held.items() if amounts.get(zone)}


def _totals(kubelet: Kubelet, state: KubeletState) -> dict[str, Total]:
    allocatable = predicates.allocatable(kubelet, state)
    used = dict.fromkeys(allocatable, 0)
    for pod in state.active.values():
        for resource, amount in requests.effective(pod).items():
            if resource in used:
                used[resource] += amount.milli if resource == resourcenames.CPU else amount.value
    return {resource: Total(amount, amount - used[resource]) for resource, amount in allocatable.items()}
