"""What rows say to a shape: node totals, then the pod's wishes, then the node's managers.

`verdicts` asks for rows that changed. Rows of one kind are given to a kernel together; those that numbers alone do not
decide are asked one by one, and how that is done (`ask`) is the caller's. Codes and scores are described in
`decisions.Code`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from numalign.api.caches import BoundedCache
from numalign.placement import kernels
from numalign.placement.columns import fit, intent, requests
from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import UNREPORTED, VACANT, Columns, Looks
from numalign.placement.columns.intent import Judgement
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.decisions import Code
from numalign.placement.kernels import directrow, scalar, scoring
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.block import Outcomes, RowBlock
from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.strategies import Scoring
from numalign.placement.kernels.work import Work
from numalign.placement.verdicts import chargerow
from numalign.placement.verdicts.pick import Codes
from numalign.placement.verdicts.rowlanes import KeptLanes
from numalign.placement.verdicts.verdicts import VerdictTable

Ask = Callable[[VerdictTable, int], int]
"""A row's code or score for a shape, by whatever is exact for this row."""

Judged = tuple[int, tuple[int, ...]]
"""A row's code or score, and the zones of every container."""

MOST_LOOKS: Final = 8192


class Evaluation:
    """The judge of all rows, for `verdicts`."""

    def __init__(self, columns: Columns, scoring: Scoring, ask: Ask) -> None:
        self.scoring = scoring
        self._columns = columns
        self._lanes = KeptLanes(columns)
        self._by_looks: BoundedCache[tuple[int, int, Looks], Judged] = BoundedCache(MOST_LOOKS)
        """What the kernel said to rows one by one, by shape, kind and looks: nodes of one kind fill up alike."""
        self._usual = UNREPORTED
        """The kind that more than half of the rows were of; none yet, or none at all."""
        self._ask = ask

    @property
    def kernel(self) -> kernels.Kernel:
        return kernels.best()

    def row(self, table: VerdictTable, row: int) -> int:
        kind = int(self._columns.kind[row])
        if kind == VACANT:
            return Code.VACANT
        if not fit.fits_row(self._columns, row, table.totals):
            return Code.TOTALS
        wish = self.judgement(table, kind)
        if not wish.allowed:
            return Code.INTENT
        return lowered(self._code(table, kind, row), wish)

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        """Put the answers of these rows into the table, kind by kind; its peaks are the caller's affair."""
        while len(rows):
            kind = self._kind_to_ask(rows)
            if kind >= 0 and self.judgement(table, kind).allowed:
                rows = self._survey_kind(table, kind, rows)
            else:
                rows = self._survey_without_zones(table, kind, rows)

    def program(self, table: VerdictTable, kind: int) -> Program:
        """What nodes of this kind are asked for the shape."""
        found = table.programs.get(kind)
        if found is None:
            resources = self._columns.resources
            found = table.programs[kind] = requests.program(table.shape, self._columns.kinds[kind], resources)
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
        columns = self._columns
        return RowBlock(
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
        if self._columns.loose[row]:
            return self._ask(table, row)
        code, table.masks[row] = self.judged(table, kind, row)
        if code != Code.NOT_DECIDED:
            return code
        table.masks[row] = chargerow.NO_MASK
        return self._ask(table, row)

    def judged(self, table: VerdictTable, kind: int, row: int) -> Judged:
        """A tight row by numbers alone."""
        flat = self._columns.flat
        steps = directrow.steps(self.plan(table, kind), flat.width)
        if steps is not None:
            these = slice(row * flat.span, (row + 1) * flat.span)
            cells = flat.cells[row * flat.zones : (row + 1) * flat.zones].tolist()
            found = directrow.decide(steps, flat.free[these].tolist(), flat.allocatable[these].tolist(), cells)
            if found is not None:
                return found
        return self._by_kernel(table, kind, row)

    def _by_kernel(self, table: VerdictTable, kind: int, row: int) -> Judged:
        """By all rules, or as they judged a row that looked the same."""
        known, looks = self._by_looks, (table.shape.number, kind, self._columns.looks(row))
        found = known.get(looks)
        if found is None:
            found = known.keep(looks, self.kernel.evaluate_row(self.block(kind), row, self.plan(table, kind)))
        return found

    def _kind_to_ask(self, rows: Rows) -> int:
        """The kind that most rows are of, where all are asked: their lanes serve one kind."""
        columns = self._columns
        if rows is columns.every_row and self._usual >= 0:
            return self._usual
        return int(columns.kind[rows[0]])

    def _survey_kind(self, table: VerdictTable, kind: int, rows: Rows) -> Rows:
        """All of these rows that are of one kind; the others are handed back."""
        plan = self.plan(table, kind)
        nodes, answers = fit.nodes(self._columns, kind, table.totals), Outcomes(table.codes, table.masks)
        every = self._lanes.current() if rows is self._columns.every_row else None
        undecided, others = self.kernel.survey(self.block(kind), nodes, rows, plan, answers, every)
        if 2 * (len(rows) - len(others)) > self._columns.height:
            self._usual = kind
        if len(undecided):
            table.codes[undecided] = self._undecided(table, kind, undecided)
        penalty = self.judgement(table, kind).penalty
        if penalty:
            mine = rows[self._columns.kind[rows] == kind]
            scores = table.codes[mine]
            table.codes[mine] = np.where(scores > 0, np.maximum(1, scores - penalty), scores)
        return others

    def _undecided(self, table: VerdictTable, kind: int, rows: Rows) -> Codes:
        """By the general rules, and where these do not tell, one by one."""
        codes: Codes = np.full(len(rows), Code.NOT_DECIDED, np.int32)
        tight = np.flatnonzero(~self._columns.loose[rows])
        if len(tight):
            found = self.kernel.evaluate(self.block(kind), rows[tight], self.program(table, kind), self.scoring)
            codes[tight], table.masks[rows[tight]] = found.code_or_score, found.masks
        for place in np.flatnonzero(codes == Code.NOT_DECIDED).tolist():
            table.masks[rows[place]] = chargerow.NO_MASK
            codes[place] = self._ask(table, int(rows[place]))
        return codes

    def _survey_without_zones(self, table: VerdictTable, kind: int, rows: Rows) -> Rows:
        """Rows that are vacant, have no report, or do not keep the pod's wishes."""
        same = self._columns.kind[rows] == kind
        mine = rows[same]
        if kind == VACANT:
            table.codes[mine] = Code.VACANT
        else:
            code = 0 if self.judgement(table, kind).allowed else Code.INTENT
            table.codes[mine] = np.where(fit.fits(self._columns, mine, table.totals), code, Code.TOTALS)
        others: Rows = rows[~same]
        return others


def lowered(code: int, wish: Judgement) -> int:
    """What is left of a score where a wish is not kept."""
    return max(1, code - wish.penalty) if code > 0 else code


def _union(masks: Sequence[int]) -> int:
    together = 0
    for mask in masks:
        together |= mask
    return together
