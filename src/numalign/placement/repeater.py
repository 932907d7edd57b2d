"""Many pods of one shape at once, with machine code: the Python side of `repeating`.

`exactflavour` has one as soon as compiled kernels are ready. Runs go as far as they can; rows and pods that ask for
more than numbers are left to the flavour, one by one, and what was placed is entered into ledger and totals. Importing
this module needs numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numalign.api.pod import Pod
from numalign.placement import pick, repeating, tightrows
from numalign.placement.changelog import LENGTH
from numalign.placement.columns import Columns
from numalign.placement.decisions import Decision
from numalign.placement.kernels.compiled import recorded
from numalign.placement.noderules import NodeRules
from numalign.placement.repeating import (
    ASK_PLACE,
    ASK_ROW,
    ASKED,
    FULL,
    GENERATION,
    KIND,
    PENALTY,
    PLACED,
    ROW,
    SEEN,
    SHAPE,
    TRUSTING,
    Job,
    Outcome,
    Rows,
    Scratch,
    Table,
    Whole,
)
from numalign.placement.rowfacts import RowFacts
from numalign.placement.shapes import Shapes
from numalign.placement.tenants import Tenants
from numalign.placement.verdicts import VerdictTable

if TYPE_CHECKING:
    from numalign.placement.exactflavour import ExactFlavour


def warm() -> None:
    """Compile `run`, or load it, with a run in which nothing fits."""
    from numalign.placement.exactflavour import ExactFlavour
    from numalign.placement.settings import Settings

    columns, shapes = Columns(), Shapes()
    toy = ExactFlavour(Settings(), columns, shapes, Tenants(columns))
    columns.describe(columns.row("toy"), RowFacts(node="toy", rules=NodeRules(zones=(0, 1))))
    table = toy.verdicts.find(shapes.intern(Pod()))
    table.kind, table.seen = 0, columns.log.generation
    repeating.run(Repeater(toy, trusting=False).job(table, [0.5]))


class Repeater:
    """Runs for pods of one shape, with what they leave over done by the flavour."""

    def __init__(self, flavour: ExactFlavour, *, trusting: bool) -> None:
        self._flavour = flavour
        self._columns = flavour.columns
        self._trusting = trusting
        self._scratches: dict[int, Scratch] = {}

    def decide(self, pods: Sequence[Pod], table: VerdictTable, chances: list[float]) -> list[Decision]:
        flavour, done = self._flavour, list[Decision]()
        table.make_room(len(self._columns.kind))
        if table.seen < 0 or self._columns.log.generation - table.seen > LENGTH:
            flavour.verdicts.refresh(table)
        while len(done) < len(pods):
            if table.kind < 0:
                done.append(self._decide_one(pods[len(done)], table, chances[len(done)]))
                continue
            job = self.job(table, chances[len(done) :])
            why = repeating.run(job)
            self._columns.log.generation, table.seen = int(job.numbers[GENERATION]), int(job.numbers[SEEN])
            done += self._decisions(job, table, pods[len(done) :])
            if why == FULL:
                done += [flavour.refused(pod, table) for pod in pods[len(done) :]]
            elif why == ASK_ROW:
                for row in dict.fromkeys(job.scratch.asked[: job.numbers[ASKED]].tolist()):
                    table.put(row, flavour.evaluation.row(table, row))
            elif why == ASK_PLACE:
                self._place(int(job.numbers[ROW]), table, pods, chances, done)
        return done

    def _place(
        self, row: int, table: VerdictTable, pods: Sequence[Pod], chances: list[float], done: list[Decision]
    ) -> None:
        """The best row is not for a run of this kind: let the next run be of its kind, or place one pod by the book."""
        kind = int(self._columns.kind[row])
        if kind != table.kind and kind >= 0 and not self._columns.loose[row]:
            table.kind = kind
            return
        decision = self._flavour.placed(pods[len(done)], table, row)
        if decision is None:
            chances[len(done)] = pick.another(chances[len(done)])
        else:
            done.append(decision)

    def _decide_one(self, pod: Pod, table: VerdictTable, chance: float) -> Decision:
        decision = self._flavour.decide(pod, table, chance)
        if decision.node is not None:
            table.kind = int(self._columns.kind[self._columns.rows[decision.node]])
        return decision

    def job(self, table: VerdictTable, chances: list[float]) -> Job:
        """A run over the table as it is. What does not change from run to run is kept with the table."""
        columns, count = self._columns, len(chances)
        known: Job | None = table.job
        if known is None or not self._is_current(known, table):
            known = table.job = self._new_job(table)
        numbers = known.numbers
        numbers[GENERATION], numbers[SEEN], numbers[PLACED] = columns.log.generation, table.seen, 0
        if len(known.chances) == count:
            known.chances[:] = chances
            return known
        steps = known.outcome.masks.shape[1]
        rows, scores, tenures = (np.empty(count, np.int32) for _ in range(3))
        outcome = Outcome(rows, np.empty((count, steps), np.uint8), scores, tenures)
        job: Job = known._replace(chances=np.array(chances), outcome=outcome)
        table.job = job
        return job

    def _is_current(self, job: Job, table: VerdictTable) -> bool:
        """Whether no array has been replaced by a larger one since, and the kind is the same."""
        same = job.block[0] is self._columns.free and job.table.codes is table.codes
        return same and job.table.best is table.peaks.best and job.numbers[KIND] == table.kind

    def _new_job(self, table: VerdictTable) -> Job:
        columns, kind = self._columns, table.kind
        plan = self._flavour.evaluation.plan(table, kind)
        numbers = np.zeros(9, np.int64)
        numbers[KIND], numbers[SHAPE], numbers[TRUSTING] = kind, table.shape.number, self._trusting
        numbers[PENALTY] = self._flavour.evaluation.judgement(table, kind).penalty
        asked = (np.array(each, np.int64) for each in (table.totals.columns, table.totals.amounts))
        return Job(
            plan=recorded(plan),
            block=self._flavour.evaluation.block(kind)[1:],
            settled=columns.settled,
            whole=Whole(columns.offered, columns.requested, columns.pods, columns.most_pods, *asked),
            rows=Rows(columns.kind, columns.loose, columns.tenure, columns.log.ring),
            table=Table(table.codes, table.masks, table.peaks.best, table.peaks.count),
            numbers=numbers,
            chances=np.empty(0),
            outcome=Outcome(
                np.empty(0, np.int32),
                np.empty((0, table.masks.shape[1]), np.uint8),
                np.empty(0, np.int32),
                np.empty(0, np.int32),
            ),
            scratch=self._scratch(plan.steps),
        )

    def _scratch(self, steps: int) -> Scratch:
        found = self._scratches.get(steps)
        if found is None:
            rows, codes, asked = (np.empty(LENGTH, np.int32) for _ in range(3))
            masks = np.zeros((LENGTH, steps), np.uint8)
            found = self._scratches[steps] = Scratch(rows, codes, masks, asked, tightrows.charges())
        return found

    def _decisions(self, job: Job, table: VerdictTable, pods: Sequence[Pod]) -> list[Decision]:
        """Enter what a run has placed, and say so."""
        flavour, names, kind, pairs = self._flavour, self._columns.names, table.kind, table.totals.pairs
        enter, note, template = flavour.mirror.enter, flavour.tenants.note, flavour.template
        warning = flavour.evaluation.judgement(table, kind).reason
        count = int(job.numbers[PLACED])
        made = []
        for pod, row, masks, score, tenure in zip(pods, *(part[:count].tolist() for part in job.outcome), strict=False):
            holding, placement = template(table, kind, masks).filled(pod)
            node = names[row]
            enter(row, pod, holding, tenure)
            note(holding.uid, node, pairs)
            decision = Decision(
                uid=holding.uid,
                node=node,
                score=score,
                placement=placement,
                entries=holding.entries,
                warning=warning,
            )
            made.append(decision)
        return made
