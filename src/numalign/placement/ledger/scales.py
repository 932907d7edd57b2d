"""A node's pods, ready to be weighed against its report.

`judging` makes one for every report, `coverage` and `totals` weigh with it. Holdings of pods that nobody has asked
about are only made up where they count: at a start there are many of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from numalign.placement.columns.resources import Resources
from numalign.placement.ledger.nodeledger import Book
from numalign.placement.ledger.podrecord import Record
from numalign.placement.ledger.unobserved import Beliefs
from numalign.placement.reports.nodefacts import RowFacts


class Scales(Struct, frozen=True):
    book: Book
    facts: RowFacts
    beliefs: Beliefs

    @property
    def resources(self) -> Resources:
        return self.beliefs.resources

    def need(self, records: Iterable[Record]) -> None:
        """Make sure that they have holdings."""
        for record in records:
            if record.holding is None:
                self.beliefs.ensure(record, self.facts)
                self.book.put(record)
