"""What the ledger supposes about pods that no report names.

`Beliefs` turns specs into holdings where nothing better is known, and keeps apart what reports hide. Programs are
made once per shape and kind of node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Final

from msgspec import structs

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.columns import requests
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import Resources
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.ledger import observed, unobservedzones
from numalign.placement.ledger import podrecord as recording
from numalign.placement.ledger.changes import Problem
from numalign.placement.ledger.holdings import Entry, Holding, Source
from numalign.placement.ledger.podrecord import COVERED, Record
from numalign.placement.reports.nodefacts import RowFacts, Stock

MOST_KNOWN: Final = 8192


class Beliefs:
    """Holdings from specs alone."""

    def __init__(self, resources: Resources, shapes: Shapes) -> None:
        self.resources = resources
        self.problems: Counter[Problem] = Counter()
        self._shapes = shapes
        self._programs: dict[tuple[int, NodeRules], Program] = {}
        self._anywhere: dict[tuple[int, NodeRules, Stock], tuple[Entry, ...]] = {}
        """Of nodes without devices in several zones; replicas on nodes of one make have the same."""

    def ensure(self, record: Record, facts: RowFacts) -> Holding:
        """The record's holding; if there is none, all that it may hold in every zone where it may be."""
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
        entries = unobservedzones.anywhere(self._program(shape, facts.rules), facts, self.resources)
        if not facts.classes:
            if len(self._anywhere) >= MOST_KNOWN:
                self._anywhere.clear()
            self._anywhere[key] = entries
        return entries

    def hidden(self, record: Record, facts: RowFacts) -> tuple[Entry, ...]:
        """What the report does not show of a pod that it covers (engine spec R3)."""
        if record.cover is not COVERED or not recording.has_init_steps(record.pod):
            return ()
        steps = {each.name for each in record.pod.spec.init_containers if not each.is_sidecar}
        if record.listed is not None and steps <= observed.names(record.listed):
            return ()
        zones = 0
        for each in self.ensure(record, facts).containers:
            zones |= each.union if each.container in steps else 0
        program = self.program(record, facts)
        return unobservedzones.hidden(
            program, zones or facts.rules.every_zone, facts, self.resources, memory=not _has_moved_on(record.pod)
        )

    def program(self, record: Record, facts: RowFacts) -> Program:
        """What the pod asked the node's managers for."""
        return self._program(self.shape(record.pod), facts.rules)

    def _program(self, shape: Shape, rules: NodeRules) -> Program:
        key = shape.number, rules
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = requests.program(shape, rules, self.resources)
        return found

    def retain_shapes(self, used: Container[int]) -> None:
        """Programs of these shapes are needed further on."""
        self._programs = {key: program for key, program in self._programs.items() if key[0] in used}
        self._anywhere.clear()

    def shape(self, pod: Pod) -> Shape:
        try:
            return self._shapes.intern(pod)
        except BadObject:
            # Such a pod is never one of ours; what it holds does not depend on its wishes.
            self.problems[Problem.POD_NOT_UNDERSTOOD] += 1
            return self._shapes.intern(structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={})))


def _has_moved_on(pod: Pod) -> bool:
    """Whether the init containers are done and something after them has started: then their memory is free."""
    return pod.status.phase == "Running" or any(status.has_started for status in pod.status.container_statuses)
