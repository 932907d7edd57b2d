"""Evaluates rows for a shape: node totals, then the pod's wishes, then the node's managers.

`verdicts` calls it for rows that changed. Rows of one kind go to the kernel together; rows that numbers alone do not
decide go one by one to `ask`, which `exact` provides. Codes and scores are described in `decisions.Code`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import structs

from numalign.placement.columns import intent, requests
from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import UNREPORTED, VACANT, Columns
from numalign.placement.columns.intent import Judgement
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import LAST_RESORT, Code
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels import scalar, scoring
from numalign.placement.kernels.block import OPEN, Kernel, Question, RowBlock, RowTotals
from numalign.placement.kernels.plan import Plan, Scoring
from numalign.placement.kernels.work import Work
from numalign.placement.referenceargs import Strategy
from numalign.placement.verdicts import chargerow
from numalign.placement.verdicts.fragmentation import Fragmentation
from numalign.placement.verdicts.verdicts import VerdictTable

Ask = Callable[[VerdictTable, int], int]
"""A row's code or score for a shape, by whatever is exact for this row."""


SOME: Final = 16
"""Rows up to which arrays over them do not pay."""
UNKNOWN: Final = 0
"""The score of a row whose node has no report."""
NO_RULES: Final = NodeRules(zones=(0,))


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
        self.fragmentation: Fragmentation | None = None
        """What scores rows instead of the kernel, if the strategy says so."""
        if scoring.strategy is Strategy.LEAST_FRAGMENTATION:
            # What is packed is also kept together; so it is until something is typical.
            self.scoring = structs.replace(scoring, strategy=Strategy.MOST_ALLOCATED)
            self.fragmentation = Fragmentation(columns, self, by_scarcity=True)
        self._ask = ask
        self._one: Rows = np.zeros(1, np.int32)
        """For a single row, which is what mostly changed."""

    def survey(self, table: VerdictTable, rows: Rows) -> None:
        """Put the answers of these rows into the table, kind by kind."""
        columns = self._columns
        if len(rows) <= SOME:
            kinds = {columns.flat.kind[row] for row in rows.tolist()}
        else:
            found = columns.kind[: len(rows)] if rows is columns.every_row else columns.kind[rows]
            kinds = {found.item(0)} if (found == found[0]).all() else set(np.unique(found).tolist())
        for kind in kinds:
            if kind == VACANT:
                table.codes[rows[columns.kind[rows] == VACANT]] = Code.VACANT
            else:
                self._survey_kind(table, kind, rows)

    def survey_row(self, table: VerdictTable, row: int) -> None:
        """The same for one row."""
        kind = self._columns.flat.kind[row]
        if kind == VACANT:
            table.codes[row] = Code.VACANT
        else:
            self._one[0] = row
            self._survey_kind(table, kind, self._one)

    def program(self, table: VerdictTable, kind: int) -> Program:
        """What nodes of this kind are asked for the shape."""
        return self.program_of(table.shape, kind)

    def program_of(self, shape: Shape, kind: int) -> Program:
        """The same of a shape."""
        resources = self._columns.resources
        found = requests.program(shape, self._columns.kinds[kind], resources)
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
            reported = kind != UNREPORTED
            rules, program = (self._rules(kind), self.program(table, kind)) if reported else (None, None)
            found = table.judgements[kind] = intent.judge(table.shape.intent, rules, program)
        return found

    def block(self, kind: int) -> RowBlock:
        """All rows of the cluster, to be read by the rules of one kind."""
        columns, known = self._columns, self._blocks.get(kind)
        if known is not None and known.free is columns.free and known.size is columns.size:
            return known
        made = self._blocks[kind] = RowBlock(
            rules=self._rules(kind),
            free=columns.free,
            stock=columns.stock,
            size=columns.size,
            allocatable=columns.allocatable,
            homeless=columns.homeless,
            homeless_size=columns.homeless_size,
            full_core_cpus=columns.full_core_cpus,
            cells=columns.cells,
            busy=columns.busy,
            split_known=columns.split_known,
            totals=RowTotals(
                kind=columns.kind,
                loose=columns.loose,
                pods=columns.pods,
                most_pods=columns.most_pods,
                spare=columns.spare,
            ),
        )
        return made

    def settled_block(self, kind: int) -> RowBlock:
        """The same rows with what is free when no pending pod is charged."""
        columns, known = self._columns, self._settled_blocks.get(kind)
        if known is None or known.free is not columns.settled or known.size is not columns.size:
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

    def _survey_kind(self, table: VerdictTable, kind: int, rows: Rows) -> None:
        """By the kernel, and where it does not decide, one by one."""
        question = self.question(table, kind)
        undecided = self.kernel.survey(self.block(kind), question, rows, table.codes, table.masks)
        if not undecided and (self.fragmentation is None or kind == UNREPORTED):
            return
        wish = self.judgement(table, kind)
        mine = rows[self._columns.kind[rows] == kind]
        asked = mine[table.codes[mine] == Code.NOT_DECIDED]
        for row in asked.tolist():
            table.masks[row] = chargerow.NO_MASK
            table.codes[row] = lowered(self._ask(table, row), wish)
        if self.fragmentation is None or kind == UNREPORTED:
            return
        # Rows that the row model leaves as a last resort stay one.
        doubtful = asked[table.codes[asked] <= LAST_RESORT]
        fitting = mine[(table.codes[mine] > 0) & ~np.isin(mine, doubtful)]
        self.fragmentation.score(kind, table.shape, fitting, table.codes, table.masks)
        table.codes[fitting] = np.maximum(1, table.codes[fitting] - wish.penalty)

    def question(self, table: VerdictTable, kind: int) -> Question:
        """What the shape asks of rows of this kind."""
        found = table.questions.get(kind)
        if found is None:
            found = table.questions[kind] = self._question(table, kind)
        return found

    def counting(self, table: VerdictTable, kind: int) -> Question:
        """The same about as many pods as there is room for."""
        asked = self.question(table, kind)
        if kind == UNREPORTED:
            return asked
        plan = plans.counting(self._columns.kinds[kind], self.program(table, kind), self.scoring)
        return Question(kind=kind, plan=plan, asked=asked.asked, outright=asked.outright)

    def _question(self, table: VerdictTable, kind: int) -> Question:
        wish = self.judgement(table, kind)
        plan = self.plan(table, kind) if kind != UNREPORTED else plans.plan(NO_RULES, Program(()), self.scoring)
        outright = Code.INTENT if not wish.allowed else UNKNOWN if kind == UNREPORTED else OPEN
        asked = np.array(table.totals.pairs, np.int64).reshape(-1, 2)
        return Question(kind=kind, plan=plan, asked=asked, outright=outright, penalty=wish.penalty)

    def _rules(self, kind: int) -> NodeRules:
        return NO_RULES if kind == UNREPORTED else self._columns.kinds[kind]


def lowered(code: int, wish: Judgement) -> int:
    """What is left of a score where a wish is not kept."""
    return max(1, code - wish.penalty) if code > 0 else code


def _union(masks: Sequence[int]) -> int:
    together = 0
    for mask in masks:
        together |= mask
    return together
