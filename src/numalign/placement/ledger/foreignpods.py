"""Pods that somebody else has bound, placed by the model as far as no report tells where they are.

The ledger puts them off until somebody looks at their node, and then calls `place`. What a scheduler like us has
written on a pod outweighs the model: where they disagree, the node is not as the model has it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from numalign.placement.ledger import forecastcheck as forecasts
from numalign.placement.ledger import reconcile
from numalign.placement.ledger.changes import Problem
from numalign.placement.ledger.forecastcheck import Containers, Placer
from numalign.placement.ledger.holdings import Holding, Source
from numalign.placement.ledger.nodeledger import Book
from numalign.placement.ledger.podrecord import Record
from numalign.placement.ledger.unobserved import Beliefs
from numalign.placement.reports.nodefacts import RowFacts


class ForeignPods:
    """Places pods one by one, in the order in which they were likely bound."""

    def __init__(self, beliefs: Beliefs, placer: Placer) -> None:
        self._beliefs = beliefs
        self._placer = placer

    def place(self, book: Book, facts: RowFacts) -> None:
        """All that wait for it on this node."""
        # Nobody is in the way of others before it is placed itself, even if it was weighed already.
        for record in book.unplaced.values():
            if record.holding is not None:
                record.holding = None
                book.put(record)
        while book.unplaced:
            record = self._next_in_turn(book, facts)
            del book.unplaced[record.uid]
            self._place(book, record, facts)

    def revise(self, book: Book, holdings: Iterable[Holding]) -> None:
        """Something else is known of these pods, unless they were seen where they are."""
        for holding in holdings:
            record = book.records.get(holding.uid)
            if record is not None and (record.holding is None or record.holding.source is not Source.OBSERVED):
                record.holding = holding
                reconcile.refresh(book, record, self._beliefs)

    def _next_in_turn(self, book: Book, facts: RowFacts) -> Record:
        """Who is to be placed now: somebody of whom the model says what was foretold. The order in which pods were
        bound is not known any more, but forecasts come true in it."""
        waiting = list(book.unplaced.values())
        foretold = [(record, told) for record in waiting if (told := self._foretold(record, facts)) is not None]
        row = book.row(self._beliefs.resources) if foretold and len(waiting) > 1 else None
        found = forecasts.coming_true(foretold, self._placer, row, self._beliefs.shape) if row is not None else None
        return found or waiting[0]

    def _foretold(self, record: Record, facts: RowFacts) -> Containers | None:
        if record.forecast is None:
            return None
        found = forecasts.read(record.forecast, record.pod, facts)
        program, resources = self._beliefs.program(record, facts), self._beliefs.resources
        if found is None or not forecasts.is_possible(found, program, facts, resources):
            self._beliefs.problems[Problem.FORECAST_IMPOSSIBLE] += 1
            record.forecast = found = None
        return found

    def _place(self, book: Book, record: Record, facts: RowFacts) -> None:
        anywhere, record.holding = self._beliefs.ensure(record, facts), None
        foretold, record.forecast = self._foretold(record, facts), None
        book.put(record)
        # Most pods of a cluster hold nothing exclusively, and there is nothing to ask about them.
        row = book.row(self._beliefs.resources) if anywhere.entries else None
        self.revise(book, self._placer(record.pod, row) if row is not None else ())
        modelled = record.holding
        if foretold is not None and not forecasts.agrees(foretold, modelled):
            # Pods that are not there yet may still be moved by others; who may be anywhere cannot.
            has_come = record.started is not None
            lost = structs.replace(anywhere, promised=True)
            record.holding = forecasts.either(foretold, modelled, anywhere, facts) if has_come else lost
            book.put(record)
            self._give_up_on(book, facts)
        elif modelled is None:
            self._beliefs.problems[Problem.PLACED_NOWHERE] += bool(anywhere.entries)
            record.holding = anywhere
            book.put(record)

    def _give_up_on(self, book: Book, facts: RowFacts) -> None:
        """The node is not as the model has it, so that others it was asked about may be anywhere, too."""
        for record in [each for each in book.pending.values() if each.after < 0 and each.is_predicted]:
            record.holding = None
            record.holding = structs.replace(self._beliefs.ensure(record, facts), promised=True)
            book.put(record)
