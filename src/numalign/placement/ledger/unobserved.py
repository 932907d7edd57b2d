"""Holdings of pods that no report names: bounds from the spec alone.

The ledger asks `UnobservedPods` for a pod that was on the node before anything was known of it (`anywhere`), and for
what a report hides (`hidden`): the pod resources API does not list plain init containers, yet their CPUs and devices
stay assigned until the pod ends, and their memory until a later container starts (engine spec R3). Later containers may
reuse what an init container got, so the sum lies between the larger of the two and both together (engine spec R4)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Role
from numalign.placement.columns import requests
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts, Stock
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.ledger import observed, podrecord
from numalign.placement.ledger.divergences import Problem
from numalign.placement.ledger.nodeledger import NodeLedger
from numalign.placement.ledger.podrecord import COVERED, PodRecord


class Bounds(Struct):
    """Bounds of one resource: what long-running containers hold, and what init containers get, in sum and at a time."""

    lasting: int = 0
    init: int = 0
    largest_init: int = 0


def anywhere(program: Program, facts: RowFacts, resources: Resources) -> tuple[Entry, ...]:
    """Everything that a pod with this program may hold, in any zone of the node."""
    found: list[Entry] = []
    for column, bounds in sorted(_bounds(program).items()):
        zones, sure = _reach(resources.names[column], facts)
        if zones is None:
            continue
        least = max(bounds.lasting, bounds.largest_init)
        found += _between(column, zones, least if sure else 0, bounds.lasting + bounds.init)
    return tuple(found)


def hidden(program: Program, zones: int, facts: RowFacts, resources: Resources, *, memory: bool) -> tuple[Entry, ...]:
    """What a report does not show of a pod that it covers, in these zones; `memory`: no later container has started."""
    found: list[Entry] = []
    for column, bounds in sorted(_bounds(program).items()):
        name = resources.names[column]
        reach, _ = _reach(name, facts)
        gone = not memory and column in _memory_columns(program)
        if not bounds.init or name in facts.from_checkpoints or gone or not reach:
            continue
        within = reach & zones or reach
        found += _between(column, within, max(0, bounds.largest_init - bounds.lasting), bounds.init)
    return tuple(found)


def _between(column: int, zones: int, least: int, most: int) -> Iterator[Entry]:
    if least:
        yield Entry(column, least, zones)
    if most > least:
        yield Entry(column, most - least, zones, certain=False)


def _bounds(program: Program) -> dict[int, Bounds]:
    found: defaultdict[int, Bounds] = defaultdict(Bounds)
    for step in program.steps:
        # Pod-level resources are one allocation, and what containers use of them comes out of it.
        for column, amount in _asked(step.ask, devices_only=program.budget is not None).items():
            bounds = found[column]
            if step.role is Role.INIT:
                bounds.init += amount
                bounds.largest_init = max(bounds.largest_init, amount)
            else:
                bounds.lasting += amount
    if program.budget is not None:
        for column, amount in _asked(program.budget, devices_only=False).items():
            found[column].lasting += amount
    return found


def _asked(ask: Ask, *, devices_only: bool) -> Counter[int]:
    amounts: Counter[int] = Counter(dict(ask.devices))
    if not devices_only:
        amounts.update(dict(ask.memory or ()))
        amounts[CPU] += ask.cpus
    return +amounts


def _memory_columns(program: Program) -> frozenset[int]:
    return frozenset(column for step in program.steps for column, _ in step.ask.memory or ())


def _reach(name: str, facts: RowFacts) -> tuple[int | None, bool]:
    """The zones that have any of the resource, and whether it surely lies in zones; None: the node has none at all."""
    supply = facts.supplies.get(name)
    if supply is None:
        return None, False
    zones = sum(1 << position for position, size in enumerate(supply.size) if size)
    for each in facts.classes:
        zones |= each.zones if each.resource == name else 0
    if not zones and not supply.homeless_size:
        return None, False
    return zones, not zones or not supply.homeless_size


MOST_KNOWN: Final = 8192


class UnobservedPods:
    """Holdings from specs alone."""

    def __init__(self, resources: Resources, shapes: Shapes) -> None:
        self.resources = resources
        self.problems: Counter[Problem] = Counter()
        self._shapes = shapes
        self._anywhere: BoundedCache[tuple[int, NodeRules, Stock], tuple[Entry, ...]] = BoundedCache(MOST_KNOWN)
        """Of nodes without devices in several zones; replicas on nodes of one make have the same."""

    def ensure_all(self, records: Iterable[PodRecord], node_ledger: NodeLedger, facts: RowFacts) -> None:
        """Computes missing holdings of these records.

        At a start many records have none, so it is called only where holdings matter."""
        for record in records:
            if record.holding is None:
                self.ensure(record, facts)
                node_ledger.put(record)

    def ensure(self, record: PodRecord, facts: RowFacts) -> Holding:
        """The record's holding; if it has none, all that the pod may hold in every zone in which it may be."""
        if record.holding is None:
            shape = self.shape(record.pod)
            entries = self._entries(shape, facts)
            record.holding = Holding(
                uid=record.uid, name=record.name, source=Source.UNKNOWN, entries=entries, shape=shape.number
            )
        return record.holding

    def _entries(self, shape: Shape, facts: RowFacts) -> tuple[Entry, ...]:
        key = shape.number, facts.rules, facts.supplies.stock
        known = self._anywhere.get(key) if not facts.classes else None
        if known is not None:
            return known
        entries = anywhere(requests.program(shape, facts.rules, self.resources), facts, self.resources)
        if not facts.classes:
            self._anywhere.keep(key, entries)
        return entries

    def hidden(self, record: PodRecord, facts: RowFacts) -> tuple[Entry, ...]:
        """What the report does not show of a pod that it covers (engine spec R3)."""
        if record.cover is not COVERED or not podrecord.has_init_steps(record.pod):
            return ()
        steps = {each.name for each in record.pod.spec.init_containers if not each.is_sidecar}
        if record.listed is not None and steps <= observed.names(record.listed):
            return ()
        zones = 0
        for each in self.ensure(record, facts).containers:
            zones |= each.union if each.container in steps else 0
        program = self.program(record, facts)
        return hidden(
            program, zones or facts.rules.every_zone, facts, self.resources, memory=not _has_moved_on(record.pod)
        )

    def program(self, record: PodRecord, facts: RowFacts) -> Program:
        """The pod's program under the node's rules."""
        return requests.program(self.shape(record.pod), facts.rules, self.resources)

    def forget_shapes(self) -> None:
        """Drops cached data of shapes that are no longer kept."""
        self._anywhere.clear()

    def shape(self, pod: Pod) -> Shape:
        return self._shapes.intern_any(pod)


def _has_moved_on(pod: Pod) -> bool:
    """Whether a container after the init containers has started, so that their memory is free."""
    return pod.status.phase == "Running" or any(status.has_started for status in pod.status.container_statuses)
