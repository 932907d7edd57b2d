"""One row at a time in plain Python: what serves single rows where numba is missing, and what `arrays` leaves over.

Same functions as `compiled`, uncompiled: they run on lists (see `work`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.placement.columns.requests import Program
from numalign.placement.kernels import admit, directrow, simple
from numalign.placement.kernels.block import Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import ZONES, Plan, plan
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import Scoring
from numalign.placement.kernels.work import Work

SCRATCH: Final = Work()
"""Nothing in it outlives a row, and making one takes longer than many a row."""


def evaluate(block: RowBlock, rows: Rows, program: Program, scoring: Scoring) -> Outcomes:
    """One after the other; twin of `arrays.evaluate` and `compiled.evaluate`."""
    made = plan(block.rules, program, scoring)
    found = [evaluate_row(block, row, made) for row in rows.tolist()]
    codes = np.array([code for code, _ in found], np.int32)
    masks = np.array([own for _, own in found], np.uint8).reshape(len(found), made.steps)
    return Outcomes(codes, masks)


def evaluate_row(block: RowBlock, row: int, made: Plan) -> tuple[int, tuple[int, ...]]:
    """Code or score of one row, and the mask of every step."""
    steps = directrow.steps(made, block.free.shape[2])
    if steps is not None:
        free, there, cells = block.free[row], block.allocatable[row], block.cells[row]
        found = directrow.decide(steps, free.ravel().tolist(), there.ravel().tolist(), cells.tolist())
        if found is not None:
            return found
    scratch, code = SCRATCH, GENERAL
    if made.plain:
        load(block, row, made, scratch)
        code = simple.decide_simply(made, scratch)
    if code == GENERAL:
        load(block, row, made, scratch)
        code = admit.decide(made, scratch)
    return code, tuple(scratch.masks[: made.steps]) if code >= 0 else (0,) * made.steps


def load(block: RowBlock, row: int, made: Plan, scratch: Work) -> None:
    free, size, allocatable = block.free[row].tolist(), block.size[row].tolist(), block.allocatable[row].tolist()
    homeless, homeless_size = block.homeless[row].tolist(), block.homeless_size[row].tolist()
    width = block.free.shape[2]
    for place, column in enumerate(made.columns):
        scratch.domains[place], scratch.homeless[place], scratch.homeless_size[place] = 0, 0, 0
        if column >= width:
            for table in (scratch.free, scratch.size, scratch.allocatable):
                table[place * ZONES : (place + 1) * ZONES] = [0] * ZONES
            continue
        for zone in range(made.zones):
            at = place * ZONES + zone
            scratch.size[at] = size[zone][column]
            scratch.free[at] = max(0, free[zone][column])
            scratch.allocatable[at] = allocatable[zone][column]
            if scratch.size[at] > 0:
                scratch.domains[place] |= 1 << zone
        scratch.homeless[place] = max(0, homeless[column])
        scratch.homeless_size[place] = homeless_size[column]
    scratch.cells[: made.zones] = block.cells[row, : made.zones].tolist()
    scratch.busy = int(block.busy[row])
    scratch.full_core_cpus = int(block.full_core_cpus[row])
    scratch.whole_cores = int(block.split_known[row])
