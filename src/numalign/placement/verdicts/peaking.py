"""A table's best rows as machine code keeps them: twin of `pick.Peaks`, on the arrays of a job.

`repeating` puts codes and picks rows by these. Plain loops over numbers, in the part of Python that numba compiles. A
changed code is mostly a matter of counting; a block is looked through only when its last best row is gone."""

from __future__ import annotations

from typing import Any

from numalign.placement.verdicts.pick import BLOCK, NO_ROW


def best(job: Any, chance: float) -> int:
    """Twin of `pick.Peaks.pick`."""
    code, equals = -1, 0
    for top in range(len(job.tops)):
        if job.tops[top] > code:
            code, equals = job.tops[top], 0
        if job.tops[top] == code:
            equals += int(job.tops_count[top])
    if code < 0:
        return NO_ROW
    top, left = reached(job.tops, job.tops_count, code, 0, int(chance * equals))
    block, left = reached(job.best, job.count, code, top * BLOCK, left)
    row = block * BLOCK
    while job.codes[row] != code or left > 0:
        left -= int(job.codes[row] == code)
        row += 1
    return row


def reached(codes: Any, counts: Any, code: int, place: int, left: int) -> tuple[int, int]:
    """Where so many rows of this code are passed over, and how many of them are left to pass over there."""
    while codes[place] != code or counts[place] <= left:
        if codes[place] == code:
            left -= counts[place]
        place += 1
    return place, left


def put(job: Any, row: int, code: int) -> None:
    """One row's answer."""
    before = job.codes[row]
    if before == code:
        return
    job.codes[row] = code
    block = row // BLOCK
    peak, count = job.best[block], job.count[block]
    if code > peak:
        job.best[block], job.count[block] = code, 1
    elif code == peak:
        job.count[block] = count + 1
    elif before == peak:
        job.count[block] = count - 1
        if count == 1:
            find_peak(job, block)
    else:
        return
    lift(job, block, peak, count)


def lift(job: Any, block: int, peak: int, count: int) -> None:
    """Tell the block's top that the block was of this peak and count before."""
    top, now = block // BLOCK, job.best[block]
    if now > job.tops[top]:
        job.tops[top], job.tops_count[top] = now, job.count[block]
        return
    if peak == job.tops[top]:
        job.tops_count[top] -= count
    if now == job.tops[top]:
        job.tops_count[top] += job.count[block]
    if job.tops_count[top] == 0:
        find_top(job, top)


def find_all(job: Any) -> None:
    """Twin of `pick.Peaks.rebuild`."""
    for block in range(len(job.codes) // BLOCK):
        find_peak(job, block)
    for top in range(len(job.tops)):
        find_top(job, top)


def find_peak(job: Any, block: int) -> None:
    codes, count = job.codes[block * BLOCK : (block + 1) * BLOCK], 0
    peak = codes[0]
    for place in range(BLOCK):
        peak = max(peak, codes[place])
    for place in range(BLOCK):
        count += int(codes[place] == peak)
    job.best[block], job.count[block] = peak, count


def find_top(job: Any, top: int) -> None:
    peak, count = job.best[top * BLOCK], 0
    for block in range(top * BLOCK, (top + 1) * BLOCK):
        if job.best[block] > peak:
            peak, count = job.best[block], 0
        if job.best[block] == peak:
            count += int(job.count[block])
    job.tops[top], job.tops_count[top] = peak, count
