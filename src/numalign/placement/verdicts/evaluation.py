"""Evaluates rows for a shape: node totals, then the pod's wishes, then the node's managers.

`verdicts` calls it for rows that changed. Rows of one kind go to the kernel together; rows that numbers alone do not
decide go one by one to `ask`, which `exact` provides. Codes and scores are described in `decisions.Code`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from numalign.placement.columns import intent, nodetotals, requests
from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import UNREPORTED, VACANT, Columns
from numalign.placement.columns.intent import Judgement
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.decisions import Code
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels import scalar, scoring
from numalign.placement.kernels.block import Kernel, RowBlock
from numalign.placement.kernels.plan import Plan, Scoring
from numalign.placement.kernels.work import Work
from numalign.placement.verdicts import chargerow
from numalign.placement.verdicts.verdicts import VerdictTable

Ask = Callable[[VerdictTable, int], int]
"""A row's code or score for a shape, by whatever is exact for this row."""


SOME: Final = 16
"""Rows up to which arrays over them do not pay."""


class Evaluation:
    """The judge of all rows, for `verdicts`."""

    def __init__(self, columns: Columns, scoring: Scoring, ask: Ask, kernel: Kernel) -> None:
        self.kernel = kernel
        self.scoring = scoring
        self._columns = columns
        self._blocks: dict[int, RowBlock] = {}
        """By kind; valid as long as the columns' arrays are the same."""
        self._settled_blocks: dict[int, RowBlock] = {}
        """The same without pending pods."""
        self._ask = ask

    def row(self, table: VerdictTable, row: int) -> int:
        kind = self._columns.flat.kind[row]
        if kind == VACANT:
            return Code.VACANT
        if not nodetotals.fits_row(self._columns, row, table.totals):
            return Code.TOTALS
        wish = self.judgement(table, kind)
        if not wish.allowed:
            return Code.INTENT
        return lowered(self._code(table, kind, row), wish)

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        """Put the answers of these rows into the table, kind by kind."""
        if len(rows) <= SOME:
            return self._survey_some(table, rows.tolist())
        kinds = self._columns.kind[: len(rows)] if rows is self._columns.every_row else self._columns.kind[rows]
        if (kinds == kinds[0]).all():
            return self._survey_kind(table, kinds.item(0), rows)
        for kind in np.unique(kinds).tolist():
            self._survey_kind(table, kind, rows[kinds == kind])

    def program(self, table: VerdictTable, kind: int) -> Program:
        """What nodes of this kind are asked for the shape."""
        resources = self._columns.resources
        found = requests.program(table.shape, self._columns.kinds[kind], resources)
        self._columns.ensure_columns(len(resources))
        return found

    def plan(self, table: VerdictTable, kind: int) -> Plan:
        """The same as numbers."""
        found = table.plans.get(kind)
        if found is None:
            program = self.program(table, kind)
            found = table.plans[kind] = plans.plan(self._columns.kinds[kind], program, self.scoring)
        return found

    def judgement(self, table: VerdictTable, kind: int) -> Judgement:
        """What the pod's wishes mean on nodes of this kind."""
        found = table.judgements.get(kind)
        if found is None:
            rules = self._rules(kind)
            program = None if rules is None else self.program(table, kind)
            found = table.judgements[kind] = intent.judge(table.shape.intent, rules, program)
        return found

    def block(self, kind: int) -> RowBlock:
        """All rows of the cluster, to be read by the rules of one kind."""
        columns, known = self._columns, self._blocks.get(kind)
        if known is not None and known.free is columns.free:
            return known
        made = self._blocks[kind] = RowBlock(
            rules=columns.kinds[kind],
            free=columns.free,
            size=columns.size,
            allocatable=columns.allocatable,
            homeless=columns.homeless,
            homeless_size=columns.homeless_size,
            full_core_cpus=columns.full_core_cpus,
            cells=columns.cells,
            busy=columns.busy,
            split_known=columns.split_known,
        )
        return made

    def settled_block(self, kind: int) -> RowBlock:
        """The same rows with what is free when no pending pod is charged."""
        columns, known = self._columns, self._settled_blocks.get(kind)
        if known is None or known.free is not columns.settled:
            known = self._settled_blocks[kind] = self.block(kind)._replace(free=columns.settled)
        return known

    def score(self, table: VerdictTable, row: int, possible: Sequence[Sequence[int]]) -> int:
        """Of a row that the row model found to fit: by what all zones that a container may be in have together."""
        kind = int(self._columns.kind[row])
        plan = self.plan(table, kind)
        if plan.standing == plans.ROW_MODEL:
            return 1
        scratch = Work()
        scalar.load(self.block(kind), row, plan, scratch)
        scores = [scoring.container(plan, scratch, step, _union(masks)) for step, masks in enumerate(possible)]
        counted = [score for score in scores if score != scoring.NOTHING_ASKED]
        return scoring.summed_up(sum(counted), len(counted))

    def _rules(self, kind: int) -> NodeRules | None:
        return None if kind == UNREPORTED else self._columns.kinds[kind]

    def _code(self, table: VerdictTable, kind: int, row: int) -> int:
        if kind == UNREPORTED:
            return 0
        if not self._columns.flat.loose[row]:
            code, table.masks[row] = self.kernel.evaluate_row(self.block(kind), row, self.plan(table, kind))
            if code != Code.NOT_DECIDED:
                return code
        table.masks[row] = chargerow.NO_MASK
        return self._ask(table, row)

    def _survey_some(self, table: VerdictTable, rows: Sequence[int]) -> None:
        """A few rows: the kernel gets them together, the rest is quicker one by one than with arrays."""
        columns, totals, by_kernel = self._columns, table.totals, dict[int, list[int]]()
        kinds, loose, fits_row = columns.flat.kind, columns.flat.loose, nodetotals.fits_row
        for row in rows:
            kind = kinds[row]
            if kind < 0 or loose[row] or not fits_row(columns, row, totals):
                table.codes[row] = self.row(table, row)
            elif kind in by_kernel:
                by_kernel[kind].append(row)
            else:
                by_kernel[kind] = [row]
        for kind, some in by_kernel.items():
            self._survey_decided(table, kind, np.array(some, np.int32))

    def _survey_decided(self, table: VerdictTable, kind: int, rows: Rows) -> None:
        """A few rows of one kind that have room and are not loose."""
        wish = self.judgement(table, kind)
        if not wish.allowed:
            table.codes[rows] = Code.INTENT
            return
        found = self.kernel.evaluate(self.block(kind), rows, self.plan(table, kind))
        table.codes[rows], table.masks[rows] = found
        codes = found.code_or_score.tolist()
        if wish.penalty or Code.NOT_DECIDED in codes:
            for row, code in zip(rows.tolist(), codes, strict=True):
                if code == Code.NOT_DECIDED:
                    table.masks[row] = chargerow.NO_MASK
                table.codes[row] = lowered(self._ask(table, row) if code == Code.NOT_DECIDED else code, wish)

    def _survey_kind(self, table: VerdictTable, kind: int, rows: Rows) -> None:
        """Rows of one kind."""
        if kind == VACANT:
            table.codes[rows] = Code.VACANT
            return
        room = nodetotals.fits(self._columns, rows, table.totals)
        if not room.all():
            table.codes[rows[~room]] = Code.TOTALS
            rows = rows[room]
        wish = self.judgement(table, kind)
        if kind == UNREPORTED or not wish.allowed:
            table.codes[rows] = 0 if wish.allowed else Code.INTENT
            return
        self._survey_zones(table, kind, rows)
        if wish.penalty:
            scores = table.codes[rows]
            table.codes[rows] = np.where(scores > 0, np.maximum(1, scores - wish.penalty), scores)

    def _survey_zones(self, table: VerdictTable, kind: int, rows: Rows) -> None:
        """By the kernel, and where it does not decide, one by one."""
        loose = self._columns.loose[slice(len(rows)) if rows is self._columns.every_row else rows]
        tight, others = (rows[~loose], rows[loose].tolist()) if loose.any() else (rows, [])
        found = self.kernel.evaluate(self.block(kind), tight, self.plan(table, kind))
        # A slice is copied faster than rows one by one.
        where = slice(len(tight)) if tight is self._columns.every_row else tight
        table.codes[where], table.masks[where] = found
        for row in [*tight[found.code_or_score == Code.NOT_DECIDED].tolist(), *others]:
            table.masks[row] = chargerow.NO_MASK
            table.codes[row] = self._ask(table, row)


def lowered(code: int, wish: Judgement) -> int:
    """What is left of a score where a wish is not kept."""
    return max(1, code - wish.penalty) if code > 0 else code


def _union(masks: Sequence[int]) -> int:
    together = 0
    for mask in masks:
        together |= mask
    return together
