"""Many pods of one shape, one after the other, as machine code: pick, charge, evaluate the row again.

`repeater` calls `run` where numba is there; everything it does can be done row by row in Python, and is where a row
asks for more than numbers. So it stops and says why as soon as the next step is not for it: a changed row that the
kernel does not decide, or a best row where the pod is not simple to place. Tables, columns and change log are as
after the same steps in Python. Functions are handed the whole job by its handle, see `jobs`."""

from __future__ import annotations

import sys
from typing import Any, Final

import numba
import numpy as np
from numba.extending import register_jitable

from numalign.placement.columns.changelog import LENGTH
from numalign.placement.columns.columns import MIXED, NOBODY, UNSOUND
from numalign.placement.columns.templates import MASKS_PER_KEY
from numalign.placement.decisions import LAST_RESORT, Code
from numalign.placement.kernels import compiled, direct, prefetching
from numalign.placement.kernels.compiled import _compiled_rows
from numalign.placement.kernels.plan import ZONES
from numalign.placement.kernels.prefetching import ahead
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.survey import MANY
from numalign.placement.verdicts import chargerow, peaking
from numalign.placement.verdicts.chargerow import NOT_SIMPLE
from numalign.placement.verdicts.kernelargs import (
    ASK_PLACE,
    ASK_ROW,
    ASKED,
    AT_MASKS,
    AT_ROW,
    AT_SCORE,
    AT_TENURE,
    DONE,
    FULL,
    GENERATION,
    KIND,
    PEAKED,
    PENALTY,
    PLACED,
    REASONS,
    ROW,
    SEEN,
    SHAPE,
    TRUSTING,
    WANTED,
)
from numalign.placement.verdicts.pick import NO_ROW, another

TOTALS: Final = int(Code.TOTALS)
NOT_DECIDED: Final = int(Code.NOT_DECIDED)


def _run(job: Any, generation: int, seen: int, wanted: int) -> int:
    """How many were placed, times `REASONS`, and why no more. Of `~row`, one pod is wanted, on that row."""
    numbers, chosen = job.numbers, ~wanted
    numbers[GENERATION], numbers[SEEN], numbers[PLACED] = generation, seen, 0
    numbers[WANTED] = wanted if chosen < 0 else 1
    if numbers[PEAKED] == 0:
        peaking.find_all(job)
        numbers[PEAKED] = 1
    why = DONE if _replay(job) else ASK_ROW
    while why == DONE and numbers[PLACED] < numbers[WANTED]:
        row = chosen if chosen >= 0 else peaking.best(job, job.chances[numbers[PLACED]])
        numbers[ROW] = row
        if row == NO_ROW:
            why = FULL
            continue
        _ask_for(job, row)
        if _place(job, row):
            why = DONE if _replay(job) else ASK_ROW
        elif chosen >= 0 or not _postponed(job, row):
            why = ASK_PLACE
    return int(numbers[PLACED] * REASONS + why)


def _ask_for(job: Any, row: int) -> None:
    """All that is looked at to place a pod there and to evaluate the row again."""
    for zone in range(job.plan[0].zones):
        ahead(job.free, row, zone)
        ahead(job.allocatable, row, zone)
    ahead(job.requested, row, 0)
    ahead(job.offered, row, 0)
    ahead(job.homeless_size, row, 0)
    ahead(job.cells, row, 0)
    ahead(job.masks, row, 0)
    ahead(job.full_core_cpus, row, 0)
    ahead(job.pods, row, 0)
    ahead(job.most_pods, row, 0)
    ahead(job.kind, row, 0)
    ahead(job.loose, row, 0)
    ahead(job.tenure, row, 0)


def _replay(job: Any) -> bool:
    """Evaluate rows that changed; False: some are not for us, and are noted as strange."""
    numbers, count = job.numbers, 0
    numbers[ASKED] = 0
    few = numbers[GENERATION] - numbers[SEEN] < MANY
    while numbers[SEEN] < numbers[GENERATION]:
        row = job.ring[numbers[SEEN] & (LENGTH - 1)]
        numbers[SEEN] += 1
        if job.kind[row] != numbers[KIND] or job.loose[row]:
            _note_strange(job, row)
        elif not _has_room(job, row):
            peaking.put(job, row, TOTALS)
        elif not few or not _replayed_directly(job, row):
            job.some_rows[count] = row
            count += 1
    if count > 0:
        _evaluate(job, job.free, count)
        _store(job, count)
    return bool(numbers[ASKED] == 0)


def _replayed_directly(job: Any, row: int) -> bool:
    code = _decide_directly(job, job.free, row)
    if code == GENERAL:
        return False
    for step in range(job.plan[0].steps):
        job.masks[row, step] = job.work[0].masks[step]
    peaking.put(job, row, _lowered(job, code))
    return True


def _store(job: Any, count: int) -> None:
    """What came of the first rows goes into the table."""
    for number in range(count):
        row, code = job.some_rows[number], job.some_codes[number]
        if code == NOT_DECIDED:
            _note_strange(job, row)
            continue
        for step in range(job.plan[0].steps if code > 0 else 0):
            job.masks[row, step] = job.some_masks[number, step]
        peaking.put(job, row, _lowered(job, code))


def _lowered(job: Any, code: int) -> int:
    return max(1, code - job.numbers[PENALTY]) if code > 0 else code


def _note_strange(job: Any, row: int) -> None:
    job.strange[job.numbers[ASKED]] = row
    job.numbers[ASKED] += 1


def _has_room(job: Any, row: int) -> bool:
    room = job.pods[row] < job.most_pods[row]
    for place in range(len(job.asked_columns)):
        column = job.asked_columns[place]
        room &= job.requested[row, column] + job.asked_amounts[place] <= job.offered[row, column]
    return bool(room)


def _decide_directly(job: Any, free: Any, row: int) -> int:
    """As `compiled` begins with a row: what is asked for most is decided by little."""
    plan, work, at_row = job.plan[0], job.work[0], np.uint64(row)
    if not plan.plain:
        return GENERAL
    for zone in range(plan.zones):
        work.cells[zone] = job.cells[at_row, zone]
        for place in range(plan.places):
            at, column = place * ZONES + zone, plan.columns[place]
            work.free[at] = max(0, free[at_row, zone, column])
            work.allocatable[at] = job.allocatable[at_row, zone, column]
    return int(direct.decide_directly(plan, work))


def _evaluate(job: Any, free: Any, count: int) -> None:
    """The first rows of the scratch space, all at once."""
    _compiled_rows(
        job.plan,
        free,
        job.size,
        job.allocatable,
        job.homeless,
        job.homeless_size,
        job.full_core_cpus,
        job.cells,
        job.busy,
        job.split_known,
        job.some_rows[:count],
        job.some_codes[:count],
        job.some_masks[:count],
    )


def _place(job: Any, row: int) -> bool:
    """Charge the next pod to this row; False: it is not simple, or it hangs on the order of pods."""
    numbers, plan, tenure = job.numbers, job.plan[0], job.tenure[row]
    if job.kind[row] != numbers[KIND] or job.loose[row] or tenure == UNSOUND:
        return False
    pinned = chargerow.gather(plan, job, row, job.masks[row], job.charges)
    if pinned == NOT_SIMPLE:
        return False
    if chargerow.holds_anything(plan, job.charges):
        if _hangs_on_order(job, row, tenure):
            return False
        # A pod that holds nothing is in nobody's way, whenever its turn comes.
        if tenure == NOBODY:
            job.tenure[row] = numbers[SHAPE]
        elif tenure != numbers[SHAPE]:
            job.tenure[row] = MIXED
    _note(job, row, tenure)
    chargerow.charge(plan, job, row, pinned, job.charges)
    job.pods[row] += 1
    for place in range(len(job.asked_columns)):
        job.requested[row, job.asked_columns[place]] += job.asked_amounts[place]
    job.ring[numbers[GENERATION] & (LENGTH - 1)] = row
    numbers[GENERATION] += 1
    numbers[PLACED] += 1
    return True


def _postponed(job: Any, row: int) -> bool:
    """Twin of what `exactflavour.placed` does with a row where pods of other shapes are on their way."""
    tenure, numbers = job.tenure[row], job.numbers
    if numbers[TRUSTING] or tenure == NOBODY or tenure == numbers[SHAPE]:
        return False
    if job.kind[row] != numbers[KIND] or job.loose[row] or job.codes[row] <= LAST_RESORT:
        return False
    peaking.put(job, row, LAST_RESORT)
    job.chances[numbers[PLACED]] = another(job.chances[numbers[PLACED]])
    return True


def _hangs_on_order(job: Any, row: int, tenure: int) -> bool:
    """Twin of `exactflavour`'s."""
    if job.numbers[TRUSTING] or tenure == NOBODY or tenure == job.numbers[SHAPE]:
        return False
    job.some_rows[0] = row
    _evaluate(job, job.settled, 1)
    differing = int(job.some_codes[0] < 0)
    for step in range(job.plan[0].steps):
        differing += job.some_masks[0, step] != job.masks[row, step]
    return differing > 0


def _note(job: Any, row: int, tenure: int) -> None:
    number = job.numbers[PLACED]
    job.placed[AT_ROW, number], job.placed[AT_SCORE, number] = row, job.codes[row]
    job.placed[AT_TENURE, number] = tenure
    for at in range(AT_MASKS, len(job.placed)):
        job.placed[at, number] = 0
    for step in range(job.plan[0].steps):
        job.placed[AT_MASKS + step // MASKS_PER_KEY, number] |= (
            np.int64(job.masks[row, step]) << step % MASKS_PER_KEY * 8
        )


HERE: Final = sys.modules[__name__]
for _module, _names in (
    (chargerow, ("gather", "settle", "lone_zone", "has_homeless", "has_room", "holds_anything", "charge")),
    (peaking, ("best", "reached", "put", "lift", "find_all", "find_peak", "find_top")),
    (HERE, ("_has_room", "_evaluate", "_lowered", "_note_strange", "_decide_directly", "_replayed_directly", "_store")),
    (HERE, ("_ask_for", "_replay", "_hangs_on_order", "_note", "_place", "_postponed", "_run", "another")),
):
    for _name in _names:
        register_jitable(getattr(_module, _name))


def _entry(fingerprint: int) -> Any:
    """Another fingerprint, other machine code: see `compiled`."""

    def run(handle: Any, generation: int, seen: int, wanted: int) -> int:
        return _run(handle, generation, seen, wanted) if fingerprint else DONE

    return numba.njit(cache=True, nogil=True, error_model="numpy")(run)


run = _entry(compiled.fingerprint((*compiled.ROW_KERNELS, prefetching, chargerow, peaking, HERE)))
