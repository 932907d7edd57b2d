"""NodeResourcesFit with pods gone, as preemption asks it: of all nodes, and of one node again and again.

`FreedRows` says which nodes would have room if every pod of a lower priority were gone, kept by `totals` as a table
per request and priority, so that on a cluster of thousands of nodes only those that changed are looked at again.
`FreedRow` says of one node what `filter_row` says, at the price of a few additions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.resources.resourcesfit import FitCodes, ResourceRequest
from numalign.placement.rules.resources.totals import Charge
from numalign.placement.rules.rule import Codes, Rows

NO_VICTIMS: Final = -1
"""Instead of a code: there is no pod of a lower priority."""


class FreedRows(Struct, frozen=True):
    wants: tuple[ResourceRequest, ...]
    priority: int
    world: ClusterState

    def codes(self) -> Codes:
        """By row. Not to be written to, nor kept."""
        return self.world.totals.table(self)

    def rows(self, rows: Rows) -> Codes:
        return np.array([self.row(row) for row in rows.tolist()], np.int32)

    def row(self, row: int) -> int:
        there = self.world.on_row[row].values()
        going = [each.charge for each in there if each.pod.spec.priority < self.priority]
        return FitCodes(self.wants, self.world.totals).with_others(row, going, ()) if going else NO_VICTIMS


class FreedRow:
    """One row from which some pods may go, and to which others may come."""

    def __init__(self, asked: FreedRows, row: int, coming: Iterable[Charge] = ()) -> None:
        amounts, wants = asked.world.totals, asked.wants
        there = asked.world.on_row[row].items()
        lower = {uid: each.charge for uid, each in there if each.pod.spec.priority < asked.priority}
        others = list(coming)
        self._parts = {uid: [charge.of(want.column) for want in wants] for uid, charge in lower.items()}
        """By uid of pods that may go, what they give back of each of the wants."""
        self._kept = [
            amounts.allocatable.item(want.column, row)
            - amounts.requested.item(want.column, row)
            - want.amount
            - sum(charge.of(want.column) for charge in others)
            for want in wants
        ]
        """Of each of the wants, what is left if nobody goes; less than nothing: what is missing."""
        self._places = amounts.most_pods.item(row) - amounts.pods.item(row) - len(others) - 1

    def fits(self, removed: Collection[str]) -> bool:
        gone = [part for uid, part in self._parts.items() if uid in removed]
        if self._places + len(gone) < 0:
            return False
        return all(left + sum(part[place] for part in gone) >= 0 for place, left in enumerate(self._kept))
