"""Many pods of one shape, one after the other, without machine code: twin of `repeating` in plain Python.

`exactflavour` places a pod by the book and hands those behind it over here. What they have in common is found once,
books and decisions are written at the end. A streak ends where a pod or a row asks for more than numbers, and the
flavour goes on by the book; columns, change log and table are as after the same steps there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from numalign.api.objects.pod import Pod
from numalign.placement.columns import fit
from numalign.placement.columns.columns import MIXED, NOBODY, UNSOUND
from numalign.placement.columns.templates import Template
from numalign.placement.decisions import Code, Decision
from numalign.placement.verdicts import chargerow, evaluation, pick
from numalign.placement.verdicts.verdicts import VerdictTable

if TYPE_CHECKING:
    from numalign.placement.exact import ExactFlavour

Asking = tuple[Sequence[Pod], Sequence[str], Sequence[float]]
"""Pods of one shape, their uids, and what was drawn for each."""


def placed(flavour: ExactFlavour, table: VerdictTable, asking: Asking, first: int) -> list[Decision]:
    """Decisions for pods from this one on, as long as they are simple and go to nodes of the kind of the last one."""
    kind = flavour.columns.flat.kind[flavour.columns.log.last]
    return Streak(flavour, table, kind).run(asking, first) if kind >= 0 else []


class Streak:
    """Pods of one shape on nodes of one kind."""

    def __init__(self, flavour: ExactFlavour, table: VerdictTable, kind: int) -> None:
        self._flavour = flavour
        self._table = table
        self._kind = kind
        self._flat = flavour.columns.flat
        self._plan = flavour.evaluation.plan(table, kind)
        self._wish = flavour.evaluation.judgement(table, kind)
        self._rows = list[int]()
        self._scores = list[int]()
        self._tenures = list[int]()
        self._holders = list[Template]()
        """All four by pod; tenures are the rows' before."""

    def run(self, asking: Asking, first: int) -> list[Decision]:
        """Decisions for pods from this one on, as long as they are simple."""
        table, chances, columns = self._table, asking[2], self._flavour.columns
        self._flavour.verdicts.refresh(table)
        peaks, codes = table.peaks, table.codes
        for number in range(first, len(chances)):
            row = peaks.pick(codes, chances[number])
            if row == pick.NO_ROW or not self._place(row):
                break
            room = fit.charge(columns, row, table.totals)
            if not self._look_again(row, room=room):
                break
        return self._decisions(asking[0][first:], asking[1][first:])

    def _place(self, row: int) -> bool:
        """Charge the next pod to zones of this row; False: it is not simple, or it hangs on the order of pods."""
        flat, table, flavour = self._flat, self._table, self._flavour
        tenure, shape = flat.tenure[row], table.shape.number
        if flat.kind[row] != self._kind or flat.loose[row] or tenure == UNSOUND:
            return False
        masks = table.masks[row].tobytes()
        settled = flavour.settled(table, self._kind, masks)
        if settled is None or not chargerow.takes(flat, row, settled[0]):
            return False
        spots, template = settled
        if spots.amounts and tenure != shape:
            if tenure != NOBODY and flavour.hangs_on_order(table, row, masks):
                return False
            flat.tenure[row] = shape if tenure == NOBODY else MIXED
        self._rows.append(row)
        self._scores.append(table.codes.item(row))
        self._tenures.append(tenure)
        self._holders.append(template)
        chargerow.take(flat, row, spots, self._plan)
        return True

    def _look_again(self, row: int, *, room: bool) -> bool:
        """What the row says now; False: that is not for us, and the change log tells the flavour."""
        table, flavour = self._table, self._flavour
        if room:
            code, masks = flavour.evaluation.judged(table, self._kind, row)
            if code == Code.NOT_DECIDED:
                return False
            table.masks[row] = masks
            table.put(row, evaluation.lowered(code, self._wish))
        else:
            table.put(row, Code.TOTALS)
        table.seen = flavour.columns.log.generation
        flavour.verdicts.evaluated += 1
        return True

    def _decisions(self, pods: Sequence[Pod], uids: Sequence[str]) -> list[Decision]:
        """Enter what was placed, and say so."""
        flavour, rows = self._flavour, self._rows
        names, uids = flavour.columns.names, uids[: len(rows)]
        nodes = [names[row] for row in rows]
        made = list(map(Decision, uids, nodes, self._scores, repeat(self._wish.reason), self._holders, pods))
        flavour.next_pod()
        flavour.tenants.note(uids, nodes, self._table.totals.pairs)
        flavour.mirror.enter(made, rows, self._tenures)
        return made
