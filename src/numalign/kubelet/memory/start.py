"""Starting the memory manager: reservations per zone, and accepting or refusing the state of an earlier process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from msgspec import structs

from numalign.api.decode import quantity
from numalign.kubelet import mask as masks
from numalign.kubelet.machine import Machine, Zone
from numalign.kubelet.memory.state import Block, MemoryState, Reuse, Zones, charge
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import behaviour

MANAGER = "memorymanager"
MEMORY = "memory"


def start(machine: Machine, settings: Settings) -> StaticMemory | None:
    """The static policy of a kubelet that starts on this machine; None for the policy that does nothing."""
    if settings.memory_policy == "None":
        return None
    _require_sums_to_match(machine, settings)
    reserved = {each.zone: each.limits for each in settings.reserved_memory}
    if sum(limits.get(MEMORY, 0) for limits in reserved.values()) <= 0:
        raise StartRefusal(MANAGER, "[memorymanager] you should specify the system reserved memory")
    allocatable = {zone.id: _allocatable(zone, reserved.get(zone.id, {})) for zone in machine.zones}
    return StaticMemory(allocatable, behaviour(settings.minor))


def restarted(policy: StaticMemory, checkpoint: MemoryState) -> MemoryState:
    """The state that a new process takes over, if it follows from the recorded blocks (kubelet spec 6.8)."""
    if not checkpoint.zones:
        if checkpoint.blocks:
            raise StartRefusal(MANAGER, "[memorymanager] machine state can not be empty when it has memory assignments")
        return policy.initial()
    expected = policy.initial().zones
    for uid, containers in checkpoint.blocks.items():
        whole = checkpoint.pods.get(uid)
        for name, blocks in {"": whole}.items() if whole else containers.items():
            for block in blocks:
                _require_known(block, expected, f"[memorymanager] (pod: {uid}, container: {name})")
                expected = charge(expected, block, block.size)
    same_zones = checkpoint.zones.keys() == expected.keys()
    if not same_zones or not all(_agrees(zone, checkpoint.zones, expected) for zone in expected):
        raise StartRefusal(MANAGER, "[memorymanager] the expected machine state is different from the real one")
    return structs.replace(checkpoint, reuse=Reuse())


def _require_known(block: Block, zones: Zones, who: str) -> None:
    for zone in masks.members(block.zones):
        if zone not in zones:
            raise StartRefusal(MANAGER, f"{who} the memory assignment uses the NUMA that does not exist")
        if block.kind not in zones[zone].tables:
            raise StartRefusal(MANAGER, f"{who} the memory assignment uses memory resource that does not exist")


def _agrees(zone: int, real: Zones, expected: Zones) -> bool:
    """Counters, groups and kinds must match; amounts only summed over the group, as draining depends on history."""
    one, other = real[zone], expected[zone]
    if (one.assignments, one.cells) != (other.assignments, other.cells) or one.tables.keys() != other.tables.keys():
        return False
    group = masks.members(one.cells)
    return all(_sums(real, group, kind) == _sums(expected, group, kind) for kind in one.tables)


def _sums(zones: Zones, group: tuple[int, ...], kind: str) -> tuple[int, int]:
    tables = [zones[zone].tables[kind] for zone in group if kind in zones[zone].tables]
    return sum(table.free for table in tables), sum(table.reserved for table in tables)


def _allocatable(zone: Zone, reserved: Mapping[str, int]) -> dict[str, int]:
    pages = {page.resource: page.total_bytes - reserved.get(page.resource, 0) for page in zone.hugepages}
    ordinary = zone.memory - reserved.get(MEMORY, 0) - sum(page.total_bytes for page in zone.hugepages)
    return {**pages, MEMORY: ordinary}


def _require_sums_to_match(machine: Machine, settings: Settings) -> None:
    totals: dict[str, int] = {}
    for reservation in settings.reserved_memory:
        if reservation.zone not in machine.zone_ids:
            raise StartRefusal(
                MANAGER,
                f"the reserved memory configuration references a NUMA node {reservation.zone} "
                "that does not exist on this machine",
            )
        totals = reduce(_added, reservation.limits.items(), totals)
    kinds = {*totals, *(kind for kind in machine.memory_types if settings.withheld(kind))}
    for kind in sorted(kinds):
        configured, withheld = totals.get(kind, 0), settings.withheld(kind)
        if configured != withheld:
            raise StartRefusal(
                MANAGER,
                f'the total amount "{_text(configured)}" of type "{kind}" is not equal to the value '
                f'"{_text(withheld)}" determined by Node Allocatable feature',
            )


def _added(totals: dict[str, int], item: tuple[str, int]) -> dict[str, int]:
    kind, amount = item
    return {**totals, kind: totals.get(kind, 0) + amount}


def _text(amount: int) -> str:
    return str(quantity.of(amount, quantity.Format.BINARY_SI))
