"""Rows of the engine taken straight from a kubelet model: what tests hold the row model against.

The product reads rows out of reports; here they come from the managers' own state, so that a difference is the row
model's and nobody else's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, start
from numalign.kubelet.cpu.topology import discover
from numalign.kubelet.device import Ids, Inventory, Preference
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.columns import requests
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import Groups
from numalign.placement.columns.noderules import BY_L3, NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.reports.hardware import Cores
from numalign.placement.rowmodel.state import RowClass, RowState

Table = dict[int, tuple[int, ...]]
"""Amounts by column and position."""


class View:
    """A kubelet as the engine knows it: positions instead of zone ids, columns instead of names."""

    def __init__(self, kubelet: Kubelet, resources: Resources | None = None) -> None:
        self.kubelet = kubelet
        self.resources = resources or Resources()
        self.zones = kubelet.machine.zone_ids
        self.cores = Cores(self.zones, discover(kubelet.machine))
        self.rules = self._rules()
        self._shapes = Shapes()

    def _rules(self) -> NodeRules:
        kubelet, settings, distances = self.kubelet, self.kubelet.settings, self.kubelet.rules.distances
        options = {name for name, text in settings.cpu_options.items() if text == "true"}
        return NodeRules(
            zones=self.zones,
            policy=settings.topology_policy,
            scope=settings.topology_scope,
            distances=None if distances is None else self._by_position(distances),
            static_cpus=kubelet.cpu is not None,
            cpu_options=frozenset(options if kubelet.cpu else ()),
            threads_per_core=max(1, self.cores.topology.cpus_per_core),
            sockets=self.cores.sockets,
            static_memory=kubelet.memory is not None,
            reading=kubelet.reading,
            minor=settings.minor,
            regular=self.cores.regular,
            l3_straddles=self.cores.l3_straddles and BY_L3 in options,
        )

    def _by_position(self, distances: Mapping[int, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(distances[one][other] for other in self.zones) for one in self.zones)

    def shape(self, pod: Pod) -> int:
        return self._shapes.intern(pod).number

    def program(self, pod: Pod) -> Program:
        return requests.program(self._shapes.intern(pod), self.rules, self.resources)

    def positions(self, mask: int) -> int:
        """A mask of zone ids as one of positions."""
        return masks.of(position for position, zone in enumerate(self.zones) if mask >> zone & 1)

    # The row

    def row(self, state: KubeletState) -> RowState:
        """Everything exact, as our own agent would report it."""
        state = admission.collect(self.kubelet, state)
        size: Table = {}
        base: Table = {}
        full_core_cpus = cores = groups = None
        if self.kubelet.cpu and state.cpu:
            free = self.kubelet.cpu.available(state.cpu)
            size[CPU], base[CPU] = map(self.cores.by_position, (self.cores.topology.cpus, free))
            cores = self.cores.by_free_threads(free)
            full_core_cpus = (state.cpu.default & ~self.kubelet.cpu.reserved_cores).bit_count()
        memory = self._memory(state, size, base)
        if state.memory:
            groups = self._groups(state.memory)
        classes, homeless = self._devices(state, size, base)
        inventories = self.kubelet.devices.inventories.items()
        return RowState(
            rules=self.rules,
            size=size,
            base=base,
            homeless=homeless,
            classes=tuple(classes),
            full_core_cpus=None if full_core_cpus is None else (full_core_cpus, full_core_cpus),
            cores=cores,
            groups=groups,
            memory=memory,
            broken=frozenset(self.resources.column(name) for name, each in inventories if not each.healthy),
        )

    def _memory(self, state: KubeletState, size: Table, base: Table) -> frozenset[int]:
        if not (self.kubelet.memory and state.memory):
            return frozenset()
        kinds = frozenset.intersection(*(frozenset(zone.tables) for zone in state.memory.zones.values()))
        for kind in kinds:
            column = self.resources.column(kind)
            size[column] = tuple(self.kubelet.memory.allocatable[zone][kind] for zone in self.zones)
            base[column] = tuple(state.memory.zones[zone].tables[kind].free for zone in self.zones)
        return frozenset(map(self.resources.column, kinds))

    def _groups(self, memory: MemoryState) -> Groups:
        busy = masks.of(zone for zone, each in memory.zones.items() if each.assignments)
        return Groups(tuple(self.positions(memory.zones[zone].cells) for zone in self.zones), self.positions(busy))

    def _devices(self, state: KubeletState, size: Table, base: Table) -> tuple[list[RowClass], dict[int, int]]:
        classes: list[RowClass] = []
        homeless = {}
        positions = range(len(self.zones))
        for resource, inventory in self.kubelet.devices.inventories.items():
            column = self.resources.column(resource)
            unused = inventory.healthy - state.devices.in_use(resource)
            free = Counter(self.place(inventory, each) for each in unused)
            every = Counter(self.place(inventory, each) for each in inventory.by_id)
            size[column] = tuple(every[1 << position] for position in positions)
            base[column] = tuple(free[1 << position] for position in positions)
            homeless[column] = free[None]
            classes += [
                RowClass(column, zones, count, free[zones])
                for zones, count in every.items()
                if zones is not None and zones.bit_count() != 1
            ]
        return classes, homeless

    def place(self, inventory: Inventory, device: str) -> int | None:
        """The positions that a device is attached to; None: it names no zone."""
        zones = inventory.zones.get(device)
        return None if zones is None else self.positions(zones)

    @property
    def memory_columns(self) -> frozenset[int]:
        return frozenset(map(self.resources.column, self.kubelet.machine.memory_types))

    # What a pod got

    def allows(self, state: KubeletState, pod: Pod, container: str, possible: Sequence[int]) -> bool:
        """Whether the mask that a container was aligned to is a possible one; all zones stand for any."""
        mask = state.affinity(pod.metadata.uid, container).mask
        if mask is None or not possible:
            return not possible and mask in (None, self.kubelet.machine.all_zones)
        return self.positions(mask) in possible or self.rules.every_zone in possible

    def held(self, state: KubeletState, uid: str) -> Mapping[tuple[int, int | None], int]:
        """By column and zones, what a pod holds: memory by the zones of its blocks."""
        found: Counter[tuple[int, int | None]] = Counter()
        if state.cpu:
            cpus = state.cpu.pods.get(uid, 0)
            for assigned in state.cpu.assignments.get(uid, {}).values():
                cpus |= assigned
            for position, count in enumerate(self.cores.by_position(cpus)):
                found[CPU, 1 << position] += count
        if state.memory:
            containers = state.memory.blocks.get(uid, {}).values()
            blocks = state.memory.pods.get(uid) or [block for held in containers for block in held]
            for block in blocks:
                found[self.resources.column(block.kind), self.positions(block.zones)] += block.size
        for resource, inventory in self.kubelet.devices.inventories.items():
            for device in state.devices.held_by_pod(uid, resource):
                found[self.resources.column(resource), self.place(inventory, device)] += 1
        return {where: amount for where, amount in found.items() if amount}


def outside(held: Mapping[tuple[int, int | None], int], entries: tuple[Entry, ...], zones: int) -> list[str]:
    """What of the truth the entries do not allow, mask by mask."""
    wrong = []
    columns = {column for column, _ in held} | {entry.column for entry in entries}
    for column in columns:
        every = sum(amount for (own, _), amount in held.items() if own == column)
        least = sum(entry.amount for entry in entries if entry.column == column and entry.certain)
        most = sum(entry.amount for entry in entries if entry.column == column)
        if not least <= every <= most:
            wrong.append(f"column {column}: {every} in all, not {least} to {most}")
        for mask in range(1, 1 << zones):
            touching = sum(amount for (own, where), amount in held.items() if own == column and (where or 0) & mask)
            most = sum(entry.amount for entry in entries if entry.column == column and entry.zones & mask)
            if touching > most:
                wrong.append(f"column {column}: {touching} in {mask:b}, at most {most} expected")
    return wrong


def choosing(kubelet: Kubelet, rng: Random) -> Kubelet:
    """The same kubelet with plugins that hand out devices at random."""

    def prefer(asked: Preference) -> Ids:
        others = rng.sample(sorted(asked.available - asked.must_include), len(asked.available - asked.must_include))
        return asked.must_include | frozenset(others[: max(0, asked.size - len(asked.must_include))])

    plugins = {
        name: structs.replace(plugin, preferred_allocation=True) for name, plugin in kubelet.machine.devices.items()
    }
    return start.start(structs.replace(kubelet.machine, devices=plugins), kubelet.settings, prefer)
