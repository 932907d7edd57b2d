"""What the ledger supposes about pods that no report names.

`Beliefs` turns specs into holdings where nothing better is known, and keeps apart what reports hide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from numalign.api.caches import BoundedCache
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
from numalign.placement.ledger.nodeledger import Book
from numalign.placement.ledger.podrecord import COVERED, Record
from numalign.placement.reports.nodefacts import RowFacts, Stock

MOST_KNOWN: Final = 8192


class Beliefs:
    """Holdings from specs alone."""

    def __init__(self, resources: Resources, shapes: Shapes) -> None:
        self.resources = resources
        self.problems: Counter[Problem] = Counter()
        self._shapes = shapes
        self._anywhere: BoundedCache[tuple[int, NodeRules, Stock], tuple[Entry, ...]] = BoundedCache(MOST_KNOWN)
        """Of nodes without devices in several zones; replicas on nodes of one make have the same."""

    def ensure_all(self, records: Iterable[Record], book: Book, facts: RowFacts) -> None:
        """Make sure that these records of the book have holdings. At a start there are many that have none, so that
        this is only done where holdings count."""
        for record in records:
            if record.holding is None:
                self.ensure(record, facts)
                book.put(record)

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
        entries = unobservedzones.anywhere(requests.program(shape, facts.rules, self.resources), facts, self.resources)
        if not facts.classes:
            self._anywhere.keep(key, entries)
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
        return requests.program(self.shape(record.pod), facts.rules, self.resources)

    def forget_shapes(self) -> None:
        """Some of them are not needed any more."""
        self._anywhere.clear()

    def shape(self, pod: Pod) -> Shape:
        return self._shapes.intern_any(pod)


def _has_moved_on(pod: Pod) -> bool:
    """Whether the init containers are done and something after them has started: then their memory is free."""
    return pod.status.phase == "Running" or any(status.has_started for status in pod.status.container_statuses)
