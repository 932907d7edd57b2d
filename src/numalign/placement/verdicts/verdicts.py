"""Per shape: the code or score of every row, kept up to date by evaluating only the rows that changed.

`exact` asks for a shape's table when a pod of that shape is to be placed. A known table reads the change log
from where it stopped; a new one, or one that lags too far, is evaluated over all rows. `evaluation` decides what a row
answers. The tables least recently asked for are dropped."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, Protocol

import numpy as np

from numalign.placement.columns import nodetotals
from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.intent import Judgement
from numalign.placement.columns.nodefacts import Stock
from numalign.placement.columns.shapes import Shape
from numalign.placement.columns.templates import Template, Templates
from numalign.placement.decisions import Code, Codes
from numalign.placement.kernels.block import Question
from numalign.placement.kernels.plan import Plan
from numalign.placement.rowmodel.causes import Shortfall
from numalign.placement.verdicts.chargerow import Spots

FEW: Final = 12
"""Trials that a table remembers."""

Settled = tuple[Spots, Template]
"""What a pod whose zones are settled takes and holds."""


Trial = tuple[int, str]
"""What came of it, and for which pod."""


class VerdictTable:
    """One shape's answer for every row."""

    def __init__(self, shape: Shape, totals: nodetotals.PodRequests, rows: int) -> None:
        """Of so many rows, of which nothing is known yet."""
        self.shape = shape
        self.totals = totals
        self.plans: dict[int, Plan] = {}
        self.judgements: dict[int, Judgement] = {}
        self.questions: dict[int, Question] = {}
        self.templates: dict[int, Templates] = {}
        """All five by kind of row."""
        self.settled: dict[tuple[int, int, bytes], Settled | None] = {}
        """By kind of row, number of columns and the zones of each container."""
        self.refused_when_empty: dict[tuple[int, Stock], Shortfall | None] = {}
        """By kind of row and what there is of everything: why an empty node refuses the shape; None: it may do."""
        self.codes: Codes = np.empty(rows, np.int8)
        self.codes.fill(Code.VACANT)
        self.masks = np.zeros((rows, len(shape.pod.in_admission_order())), np.uint8)
        """By row and container the zones that a kernel found, where it found the row to fit."""
        self.tried: dict[int, Trial] = {}
        """By row what a trial made of its answer; a row that has changed since says something else by now."""
        self.turned_down = 0
        """How often a trial did that: the change log knows nothing of it."""
        self._turned_down: deque[int] = deque(maxlen=FEW)
        """The rows of the last ones."""
        self.seen = -1
        """Generation up to which changes are in here; -1: never looked."""

    def turn_down(self, row: int, code: int, uid: str) -> None:
        """The trial of a pod showed that the row is worth less than its numbers say, until it changes."""
        self.tried[row] = code, uid
        self.turned_down += 1
        self._turned_down.append(row)
        self.codes[row] = code

    def turned_down_since(self, count: int) -> list[int] | None:
        """The rows of trials that turned one down after so many had; None: more than are remembered."""
        missed = self.turned_down - count
        if not missed:
            return []
        return list(self._turned_down)[-missed:] if missed <= len(self._turned_down) else None

    def make_room(self, rows: int) -> None:
        """New rows are vacant until the change log names them."""
        if rows > len(self.codes):
            grown: Codes = np.full(rows, Code.VACANT, np.int8)
            grown[: len(self.codes)] = self.codes
            self.codes = grown
            masks = np.zeros((rows, self.masks.shape[1]), np.uint8)
            masks[: len(self.masks)] = self.masks
            self.masks = masks


class Judge(Protocol):
    """Evaluates rows for a shape; `evaluation` implements it."""

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        """Put the answers of these rows into the table's codes."""
        ...

    def survey_row(self, table: VerdictTable, row: int) -> None: ...


class Verdicts:
    """The tables of the shapes asked for lately."""

    def __init__(self, columns: Columns, judge: Judge, most: int) -> None:
        self._columns = columns
        self._judge = judge
        self._most = most
        self._tables: OrderedDict[int, VerdictTable] = OrderedDict()
        self.evaluated = 0
        """Rows, over all tables and refreshes."""

    def table(self, shape: Shape) -> VerdictTable:
        """The shape's answers, true for the columns as they are now."""
        table = self.find(shape)
        self.refresh(table)
        return table

    def shapes(self) -> set[int]:
        """Numbers of those that have a table."""
        return set(self._tables)

    def all(self) -> tuple[VerdictTable, ...]:
        """Every table, for dumps."""
        return tuple(self._tables.values())

    def find(self, shape: Shape) -> VerdictTable:
        """The shape's table as it was left; the caller brings it up to date."""
        table = self._tables.get(shape.number)
        if table is None:
            totals, room = nodetotals.totals(shape, self._columns), self._columns.room
            table = self._tables[shape.number] = VerdictTable(shape, totals, room)
            if len(self._tables) > self._most:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(shape.number)
        return table

    def forget_answers(self) -> None:
        """What makes a row good has changed: every row is evaluated again."""
        for table in self._tables.values():
            table.seen = -1

    def aside(self, shape: Shape) -> VerdictTable:
        """A table of the shape for questions that do not look at its answers. It is not kept: a request about many
        shapes must not drop those of pods that are being scheduled."""
        known = self._tables.get(shape.number)
        return known if known is not None else VerdictTable(shape, nodetotals.totals(shape, self._columns), 0)

    def refresh(self, table: VerdictTable) -> None:
        log = self._columns.log
        if table.seen == log.generation:
            return None
        table.make_room(self._columns.room)
        seen, table.seen = table.seen, log.generation
        if seen >= 0 and log.generation - seen == 1:
            self.evaluated += 1
            return self._judge.survey_row(table, log.last)
        rows = log.since(seen) if seen >= 0 else None
        if rows is None:
            rows = self._columns.every_row
        self.evaluated += len(rows)
        return self._judge.survey(table, rows)
