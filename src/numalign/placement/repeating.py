"""Many pods of one shape, one after the other, as machine code: pick, charge, evaluate the row again.

`exactflavour` calls `run` where numba is there; everything it does can be done row by row in Python, and is where a row
asks for more than numbers. So it stops and says why as soon as the next step is not for it: a changed row that the
kernel does not decide, or a best row where the pod is not simple to place. Tables, columns and change log are as
after the same steps in Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numba
import numpy as np
from numba.extending import register_jitable

from numalign.api.pod import Pod
from numalign.placement import pick, tightrows
from numalign.placement.changelog import LENGTH
from numalign.placement.columns import MIXED, NOBODY, UNSOUND, Columns
from numalign.placement.decisions import Code, Decision
from numalign.placement.kernels.compiled import _compiled_rows, recorded
from numalign.placement.noderules import NodeRules
from numalign.placement.pick import BLOCK, NO_ROW
from numalign.placement.rowfacts import RowFacts
from numalign.placement.shapes import Shapes
from numalign.placement.tenants import Tenants
from numalign.placement.tightrows import NOT_SIMPLE, Cells
from numalign.placement.verdicts import VerdictTable

if TYPE_CHECKING:
    from numalign.placement.exactflavour import ExactFlavour

DONE, FULL, ASK_ROW, ASK_PLACE = range(4)
"""All placed; nothing fits; a changed row is not for the kernel; the best row is not for simple tightrows."""
KIND, SHAPE, PENALTY, TRUSTING, GENERATION, SEEN, PLACED, ROW, ASKED = range(9)
"""Where the numbers of a job lie."""
TOTALS: Final = int(Code.TOTALS)
NOT_DECIDED: Final = int(Code.NOT_DECIDED)


class Whole(NamedTuple):
    """Node totals, and what the shape asks of them."""

    offered: Any
    requested: Any
    pods: Any
    most_pods: Any
    columns: Any
    amounts: Any


class Rows(NamedTuple):
    """What says whether a row is for the kernel, and the row without pods whose turn is open."""

    kind: Any
    loose: Any
    tenure: Any
    ring: Any


class Table(NamedTuple):
    codes: Any
    masks: Any
    best: Any
    count: Any


class Outcome(NamedTuple):
    """By pod: where it went, its zones by container, its score, and whose turn was open there before."""

    rows: Any
    masks: Any
    scores: Any
    tenures: Any


class Scratch(NamedTuple):
    """Rows to evaluate with what comes of them, rows that are not for us, a pod's charges."""

    rows: Any
    codes: Any
    masks: Any
    asked: Any
    charges: Any


class Job(NamedTuple):
    """Everything that a run works on. `block` is a `RowBlock` without rules; `settled` is free without pods whose turn
    is open. Few arrays, because each of them costs when a run is started."""

    plan: Any
    block: Any
    settled: Any
    whole: Whole
    rows: Rows
    table: Table
    numbers: Any
    chances: Any
    outcome: Outcome
    scratch: Scratch


def _run(job: Job) -> int:
    numbers = job.numbers
    cells = _cells(job.block)
    if not _replay(job):
        return ASK_ROW
    while numbers[PLACED] < len(job.chances):
        row = _best(job.table, job.chances[numbers[PLACED]])
        numbers[ROW] = row
        if row == NO_ROW:
            return FULL
        if not _place(job, cells, row):
            return ASK_PLACE
        if not _replay(job):
            return ASK_ROW
    return DONE


def _replay(job: Job) -> bool:
    """Evaluate rows that changed; False: some are not for us, and are noted as asked."""
    numbers, scratch, count = job.numbers, job.scratch, 0
    numbers[ASKED] = 0
    while numbers[SEEN] < numbers[GENERATION]:
        row = job.rows.ring[numbers[SEEN] & (LENGTH - 1)]
        numbers[SEEN] += 1
        if job.rows.kind[row] != numbers[KIND] or job.rows.loose[row]:
            _note_asked(job, row)
        elif _has_room(job.whole, row):
            scratch.rows[count] = row
            count += 1
        else:
            _put(job.table, row, TOTALS)
    if count > 0:
        _evaluate(job, job.block, count)
    for number in range(count):
        if scratch.codes[number] == NOT_DECIDED:
            _note_asked(job, scratch.rows[number])
        else:
            _put_evaluated(job, number)
    return bool(numbers[ASKED] == 0)


def _note_asked(job: Job, row: int) -> None:
    job.scratch.asked[job.numbers[ASKED]] = row
    job.numbers[ASKED] += 1


def _put_evaluated(job: Job, number: int) -> None:
    row, code = job.scratch.rows[number], job.scratch.codes[number]
    if code > 0:
        code = max(1, code - job.numbers[PENALTY])
        for step in range(job.plan[0].steps):
            job.table.masks[row, step] = job.scratch.masks[number, step]
    _put(job.table, row, code)


def _put(table: Table, row: int, code: int) -> None:
    if table.codes[row] != code:
        table.codes[row] = code
        _rebuild(table, row // BLOCK)


def _has_room(whole: Whole, row: int) -> bool:
    if whole.pods[row] >= whole.most_pods[row]:
        return False
    for place in range(len(whole.columns)):
        column = whole.columns[place]
        if whole.requested[row, column] + whole.amounts[place] > whole.offered[row, column]:
            return False
    return True


def _evaluate(job: Job, block: Any, count: int) -> None:
    """The first rows of the scratch space, all at once."""
    scratch = job.scratch
    _compiled_rows(job.plan, *block, scratch.rows[:count], scratch.codes[:count], scratch.masks[:count])


def _rebuild(table: Table, block: int) -> None:
    best, count = table.codes[block * BLOCK], 0
    for row in range(block * BLOCK, (block + 1) * BLOCK):
        if table.codes[row] > best:
            best, count = table.codes[row], 0
        if table.codes[row] == best:
            count += 1
    table.best[block], table.count[block] = best, count


def _best(table: Table, chance: float) -> int:
    """Twin of `pick.Peaks.pick`."""
    best, equals = -1, 0
    for block in range(len(table.best)):
        if table.best[block] > best:
            best, equals = table.best[block], 0
        if table.best[block] == best:
            equals += table.count[block]
    if best < 0:
        return NO_ROW
    left, block = int(chance * equals), 0
    while table.best[block] != best or table.count[block] <= left:
        if table.best[block] == best:
            left -= table.count[block]
        block += 1
    row = block * BLOCK
    while table.codes[row] != best or left > 0:
        if table.codes[row] == best:
            left -= 1
        row += 1
    return row


def _place(job: Job, cells: Cells, row: int) -> bool:
    """Charge the next pod to this row; False: it is not simple, or it hangs on the order of pods."""
    tenure = job.rows.tenure[row]
    if job.rows.kind[row] != job.numbers[KIND] or job.rows.loose[row] or tenure == UNSOUND:
        return False
    pinned = tightrows.gather(job.plan[0], cells, row, job.table.masks[row], job.scratch.charges)
    if pinned == NOT_SIMPLE:
        return False
    if tightrows.holds_anything(job.plan[0], job.scratch.charges):
        if _hangs_on_order(job, row, tenure):
            return False
        # A pod that holds nothing is in nobody's way, whenever its turn comes.
        if tenure == NOBODY:
            job.rows.tenure[row] = job.numbers[SHAPE]
        elif tenure != job.numbers[SHAPE]:
            job.rows.tenure[row] = MIXED
    _note(job, row, tenure)
    tightrows.charge(job.plan[0], cells, row, pinned, job.scratch.charges)
    whole, numbers = job.whole, job.numbers
    whole.pods[row] += 1
    for place in range(len(whole.columns)):
        whole.requested[row, whole.columns[place]] += whole.amounts[place]
    job.rows.ring[numbers[GENERATION] & (LENGTH - 1)] = row
    numbers[GENERATION] += 1
    numbers[PLACED] += 1
    return True


def _hangs_on_order(job: Job, row: int, tenure: int) -> bool:
    """Twin of `exactflavour`'s."""
    if job.numbers[TRUSTING] or tenure == NOBODY or tenure == job.numbers[SHAPE]:
        return False
    job.scratch.rows[0] = row
    _evaluate(job, (job.settled, *job.block[1:]), 1)
    differing = 0
    for step in range(job.plan[0].steps):
        differing += job.scratch.masks[0, step] != job.table.masks[row, step]
    return differing > 0


def _cells(block: Any) -> Cells:
    free, _, _, _, homeless_size, full_core_cpus, cells, busy, split_known = block
    return Cells(free, homeless_size, cells, busy, full_core_cpus, split_known)


def _note(job: Job, row: int, tenure: int) -> None:
    number, placed = job.numbers[PLACED], job.outcome
    placed.rows[number], placed.scores[number], placed.tenures[number] = row, job.table.codes[row], tenure
    for step in range(job.plan[0].steps):
        placed.masks[number, step] = job.table.masks[row, step]


for _module, _names in (
    (tightrows, ("gather", "lone_zone", "has_room", "holds_anything", "charge")),
    (sys.modules[__name__], ("_has_room", "_evaluate", "_cells", "_rebuild", "_put", "_note_asked", "_put_evaluated")),
    (sys.modules[__name__], ("_replay", "_best", "_hangs_on_order", "_note", "_place")),
):
    for _name in _names:
        register_jitable(getattr(_module, _name))
run: Any = numba.njit(cache=True, nogil=True)(_run)


def warm() -> None:
    """Compile `run`, or load it, with a run in which nothing fits."""
    from numalign.placement.exactflavour import ExactFlavour
    from numalign.placement.settings import Settings

    columns, shapes = Columns(), Shapes()
    toy = ExactFlavour(Settings(), columns, shapes, Tenants(columns))
    columns.describe(columns.row("toy"), RowFacts(node="toy", rules=NodeRules(zones=(0, 1))))
    table = toy.verdicts.find(shapes.intern(Pod()))
    table.kind, table.seen = 0, columns.log.generation
    run(Repeater(toy, trusting=False).job(table, [0.5]))


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
            why = run(job)
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
