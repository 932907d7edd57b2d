"""Many pods of one shape, one after the other, as machine code: pick, charge, evaluate the row again.

`repeater` calls `run` where numba is there; everything it does can be done row by row in Python, and is where a row
asks for more than numbers. So it stops and says why as soon as the next step is not for it: a changed row that the
kernel does not decide, or a best row where the pod is not simple to place. Tables, columns and change log are as
after the same steps in Python."""

from __future__ import annotations

import sys
from typing import Any, Final

import numba
from numba.extending import register_jitable

from numalign.placement import tightrows
from numalign.placement.changelog import LENGTH
from numalign.placement.columns import MIXED, NOBODY, UNSOUND
from numalign.placement.decisions import LAST_RESORT, Code
from numalign.placement.jobs import (
    ASK_PLACE,
    ASK_ROW,
    ASKED,
    DONE,
    FULL,
    GENERATION,
    KIND,
    PENALTY,
    PLACED,
    ROW,
    SEEN,
    SHAPE,
    TRUSTING,
    WANTED,
    Job,
    Table,
    Whole,
)
from numalign.placement.kernels import compiled
from numalign.placement.kernels.compiled import _compiled_rows
from numalign.placement.pick import BLOCK, NO_ROW, another
from numalign.placement.tightrows import NOT_SIMPLE, Cells

TOTALS: Final = int(Code.TOTALS)
NOT_DECIDED: Final = int(Code.NOT_DECIDED)


def _run(job: Job) -> int:
    numbers = job.numbers
    cells = _cells(job.block)
    if not _replay(job):
        return ASK_ROW
    while numbers[PLACED] < numbers[WANTED]:
        row = _best(job.table, job.chances[numbers[PLACED]])
        numbers[ROW] = row
        if row == NO_ROW:
            return FULL
        if not _place(job, cells, row):
            if _postponed(job, row):
                continue
            return ASK_PLACE
        if not _replay(job):
            return ASK_ROW
    return DONE


def _survey(job: Job) -> int:
    """Evaluate all rows, as many as there are; how many are not for us, and noted as asked."""
    numbers, scratch, count = job.numbers, job.scratch, 0
    numbers[ASKED] = 0
    for row in range(numbers[ROW]):
        if job.rows.kind[row] != numbers[KIND] or job.rows.loose[row]:
            _note_asked(job, row)
        elif _has_room(job.whole, row):
            scratch.rows[count] = row
            count += 1
        else:
            job.table.codes[row] = TOTALS
    _evaluate(job, job.block, count)
    for number in range(count):
        if scratch.codes[number] == NOT_DECIDED:
            _note_asked(job, scratch.rows[number])
        else:
            _store(job, number)
    for block in range(len(job.table.best)):
        _rebuild(job.table, block)
    return int(numbers[ASKED])


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
            before = job.table.codes[scratch.rows[number]]
            if _store(job, number) != before:
                _rebuild(job.table, scratch.rows[number] // BLOCK)
    return bool(numbers[ASKED] == 0)


def _note_asked(job: Job, row: int) -> None:
    job.scratch.asked[job.numbers[ASKED]] = row
    job.numbers[ASKED] += 1


def _store(job: Job, number: int) -> int:
    """What came of a row goes into the table; blocks are the caller's affair."""
    row, code = job.scratch.rows[number], job.scratch.codes[number]
    if code > 0:
        code = max(1, code - job.numbers[PENALTY])
        for step in range(job.plan[0].steps):
            job.table.masks[row, step] = job.scratch.masks[number, step]
    job.table.codes[row] = code
    return int(code)


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


def _postponed(job: Job, row: int) -> bool:
    """Twin of what `exactflavour.placed` does with a row where pods of other shapes are on their way."""
    tenure, numbers = job.rows.tenure[row], job.numbers
    if numbers[TRUSTING] or tenure == NOBODY or tenure == numbers[SHAPE]:
        return False
    if job.rows.kind[row] != numbers[KIND] or job.rows.loose[row] or job.table.codes[row] <= LAST_RESORT:
        return False
    _put(job.table, row, LAST_RESORT)
    job.chances[numbers[PLACED]] = another(job.chances[numbers[PLACED]])
    return True


def _hangs_on_order(job: Job, row: int, tenure: int) -> bool:
    """Twin of `exactflavour`'s."""
    if job.numbers[TRUSTING] or tenure == NOBODY or tenure == job.numbers[SHAPE]:
        return False
    job.scratch.rows[0] = row
    _evaluate(job, (job.settled, *job.block[1:]), 1)
    differing = int(job.scratch.codes[0] < 0)
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
    (sys.modules[__name__], ("_has_room", "_evaluate", "_cells", "_rebuild", "_put", "_note_asked", "_store")),
    (
        sys.modules[__name__],
        ("_replay", "_best", "_hangs_on_order", "_note", "_place", "_postponed", "_run", "_survey", "another"),
    ),
):
    for _name in _names:
        register_jitable(getattr(_module, _name))


def _entries(fingerprint: int) -> tuple[Any, Any]:
    """Another fingerprint, other machine code: see `compiled`."""

    def run(handle: Any) -> int:
        return _run(handle.job) if fingerprint else DONE

    def survey(handle: Any) -> int:
        return _survey(handle.job) if fingerprint else DONE

    compile = numba.njit(cache=True, nogil=True)
    return compile(run), compile(survey)


run, survey = _entries(compiled.fingerprint((*compiled.ROW_KERNELS, tightrows, sys.modules[__name__])))
