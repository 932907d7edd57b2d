"""Many pods of one shape at once, with machine code: the Python side of `repeating`.

`exactflavour` has one as soon as compiled kernels are ready. Runs go as far as they can; rows and pods that ask for
more than numbers are left to the flavour, one by one, and what was placed is entered into ledger and totals. Importing
this module needs numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from numalign.api.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement import jobs, pick, repeating, tightrows
from numalign.placement.changelog import LENGTH
from numalign.placement.columns import UNREPORTED, Columns
from numalign.placement.decisions import Decision
from numalign.placement.jobs import (
    ASK_PLACE,
    ASK_ROW,
    ASKED,
    FULL,
    GENERATION,
    KIND,
    NUMBERS,
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
from numalign.placement.kernels.compiled import recorded
from numalign.placement.mirror import Entering
from numalign.placement.noderules import NodeRules
from numalign.placement.rowfacts import RowFacts
from numalign.placement.shapes import Shapes
from numalign.placement.templates import Template
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
    repeater = Repeater(toy, trusting=False)
    kept = repeater.prepared(table, [0.5])
    repeating.run(kept.handle)
    repeating.survey(kept.handle)


class Kept(NamedTuple):
    """A job, and the handle by which it is passed on."""

    job: Job
    handle: Any


class Repeater:
    """Runs for pods of one shape, with what they leave over done by the flavour."""

    def __init__(self, flavour: ExactFlavour, *, trusting: bool) -> None:
        self._flavour = flavour
        self._columns = flavour.columns
        self._trusting = trusting
        self._kind = UNREPORTED
        """Of the row that was picked last; new tables start with it."""
        self._scratches: dict[int, Scratch] = {}

    def decide(self, pods: Sequence[Pod], table: VerdictTable, chances: list[float]) -> list[Decision]:
        flavour, done = self._flavour, list[Decision]()
        log = self._columns.log
        table.make_room(len(self._columns.kind))
        if table.seen < 0 or log.generation - table.seen > LENGTH:
            self._survey(table)
        while len(done) < len(pods):
            if table.kind < 0:
                done.append(self._decide_one(pods[len(done)], table, chances[len(done)]))
                continue
            kept = self.prepared(table, chances[len(done) :] if done else chances)
            why = repeating.run(kept.handle)
            numbers = kept.job.numbers
            log.generation, table.seen = int(numbers[GENERATION]), int(numbers[SEEN])
            done += self._decisions(kept.job, table, pods[len(done) :] if done else pods)
            if len(done) < len(pods):
                chances[len(done)] = float(kept.job.chances[numbers[PLACED]])
            if why == FULL:
                done += [flavour.refused(pod, table) for pod in pods[len(done) :]]
            elif why == ASK_ROW:
                for row in dict.fromkeys(kept.job.scratch.asked[: numbers[ASKED]].tolist()):
                    table.put(row, flavour.evaluation.row(table, row))
            elif why == ASK_PLACE:
                self._place(int(numbers[ROW]), table, pods, chances, done)
        return done

    def _survey(self, table: VerdictTable) -> None:
        """All rows of the usual kind by machine code, the others as if there were none."""
        evaluation = self._flavour.evaluation
        kind = table.kind if table.kind >= 0 else self._kind
        if kind < 0 or not evaluation.judgement(table, kind).allowed:
            self._flavour.verdicts.refresh(table)
            return
        table.kind = kind
        job, handle = self.prepared(table, [])
        job.numbers[ROW] = self._columns.height
        if repeating.survey(handle):
            others = np.sort(job.scratch.asked[: job.numbers[ASKED]])
            table.put_all(others, evaluation.rows(table, others))
        table.seen = self._columns.log.generation

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
            table.kind = self._kind = int(self._columns.kind[self._columns.rows[decision.node]])
        return decision

    def prepared(self, table: VerdictTable, chances: list[float]) -> Kept:
        """A run over the table as it is. What does not change from run to run is kept with the table."""
        kept: Kept | None = table.job
        wanted = len(chances)
        if kept is None or not self._is_current(kept.job, table) or len(kept.job.chances) < wanted:
            job = self._new_job(table, max(1, wanted))
            kept = table.job = Kept(job, jobs.handle(job))
        job = kept.job
        job.chances[:wanted] = chances
        job.numbers[GENERATION : PLACED + 1] = self._columns.log.generation, table.seen, wanted, 0
        return kept

    def _is_current(self, job: Job, table: VerdictTable) -> bool:
        """Whether no array has been replaced by a larger one since, and the kind is the same."""
        same = job.block[0] is self._columns.free and job.table.codes is table.codes
        return same and job.table.best is table.peaks.best and bool(job.numbers[KIND] == table.kind)

    def _new_job(self, table: VerdictTable, room: int) -> Job:
        columns, kind = self._columns, table.kind
        plan = self._flavour.evaluation.plan(table, kind)
        numbers = np.zeros(NUMBERS, np.int64)
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
            chances=np.empty(room),
            outcome=Outcome(
                np.empty(room, np.int32),
                np.empty((room, table.masks.shape[1]), np.uint8),
                np.empty(room, np.int32),
                np.empty(room, np.int32),
            ),
            scratch=self._scratch(plan.steps),
        )

    def _scratch(self, steps: int) -> Scratch:
        """Room for all rows, or for as many changes as the log keeps."""
        found, room = self._scratches.get(steps), max(LENGTH, len(self._columns.kind))
        if found is None or len(found.rows) < room:
            rows, codes, asked = (np.empty(room, np.int32) for _ in range(3))
            masks = np.zeros((room, steps), np.uint8)
            found = self._scratches[steps] = Scratch(rows, codes, masks, asked, tightrows.charges())
        return found

    def _decisions(self, job: Job, table: VerdictTable, pods: Sequence[Pod]) -> list[Decision]:
        """Enter what a run has placed, and say so."""
        flavour, names, kind, pairs = self._flavour, self._columns.names, table.kind, table.totals.pairs
        warning = flavour.evaluation.judgement(table, kind).reason
        count = int(job.numbers[PLACED])
        made, entering, known = list[Decision](), list[Entering](), dict[tuple[int, ...], Template]()
        for pod, row, own, score, tenure in zip(pods, *(part[:count].tolist() for part in job.outcome), strict=False):
            masks = tuple(own)
            template = known.get(masks) or known.setdefault(masks, flavour.template(table, kind, masks))
            uid, node = demands.identity(pod), names[row]
            entering.append((row, node, pod, template, tenure))
            flavour.tenants.note(uid, node, pairs)
            decision = Decision(
                uid=uid,
                node=node,
                score=score,
                placement=template.placement(pod),
                entries=template.entries,
                warning=warning,
            )
            made.append(decision)
        flavour.mirror.enter(entering)
        if made:
            flavour.next_pod()
        return made
