"""The row kernels as plain Python, on lists (see `work`): what serves until, or without, machine code.

The engine starts with it. Rows that read the same are evaluated once per plan: nodes of one kind fill up alike."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.placement.columns.columns import NONE_PENDING, NOT_EXACT
from numalign.placement.kernels import admit, counting, singlezone
from numalign.placement.kernels.block import (
    ASK,
    NO_ROOM,
    OPEN,
    Amounts,
    Codes,
    Counts,
    Masks,
    Outcomes,
    Pending,
    Question,
    RowBlock,
    Rows,
    with_room,
)
from numalign.placement.kernels.plan import MOST_STEPS, ZONES, Plan
from numalign.placement.kernels.work import Work
from numalign.placement.rules.nodeamounts import amounts as amounts
from numalign.placement.rules.nodeamounts import rank as rank
from numalign.placement.rules.nodeamounts import ranked as ranked

SCRATCH: Final = Work()
FIELD: Final = [[0.0] for _ in range(singlezone.MOST_LANES)]
"""Nothing in these outlives a row, and making them takes longer than many a row."""
MOST_KNOWN: Final = 8192
"""Answers that are kept for a plan."""

Answer = tuple[int, tuple[int, ...]]


def evaluate(block: RowBlock, rows: Rows, plan: Plan) -> Outcomes:
    """These rows, one after the other."""
    found = [evaluate_row(block, row, plan) for row in rows.tolist()]
    codes = np.array([code for code, _ in found], np.int32)
    masks = np.array([own for _, own in found], np.uint8).reshape(len(found), plan.steps)
    return Outcomes(codes, masks)


def evaluate_row(block: RowBlock, row: int, plan: Plan) -> Answer:
    """Code or score of one row, and the mask of every step."""
    known: dict[bytes, Answer] = plan.__dict__.setdefault("known", {})
    key = b"".join([each.tobytes() for each in block.of(row)])
    found = known.get(key)
    if found is None:
        if len(known) >= MOST_KNOWN:
            known.clear()
        found = known[key] = _evaluated(block, row, plan)
    return found


def survey(block: RowBlock, question: Question, rows: Rows, codes: Codes, masks: Masks) -> int:
    """These rows, one after the other."""
    totals, undecided = block.totals, 0
    assert totals is not None, "a survey looks at totals"
    asked = question.asked.tolist()
    for row in rows.tolist():
        if totals.kind[row] != question.kind:
            continue
        spare = totals.spare[row]
        has_pods = totals.pods[row] < totals.most_pods[row]
        if not has_pods or any(amount > spare.item(column) for column, amount in asked):
            codes[row] = NO_ROOM
        elif question.outright != OPEN:
            codes[row] = question.outright
        else:
            code = ASK
            if not totals.loose[row]:
                code, masks[row] = evaluate_row(block, row, question.plan)
            undecided += code == ASK
            codes[row] = max(1, code - question.penalty) if code > 0 else code
    return undecided


def count(block: RowBlock, question: Question, pending: Pending, rows: Rows) -> Counts:
    """These rows, one after the other."""
    counts = Counts(np.empty(len(rows), np.int8), np.zeros((len(rows), ZONES + 1), np.int64))
    for number, row in enumerate(rows.tolist()):
        counts.codes[number] = count_row(block, question, pending, row, counts.spread[number])
    return counts


def count_row(block: RowBlock, question: Question, pending: Pending, row: int, spread: Amounts) -> int:
    """One row. Afterwards `SCRATCH` has what is left."""
    totals, plan, alone = block.totals, question.plan, [-1] * MOST_STEPS
    assert totals is not None, "counting looks at totals"
    most = int(totals.most_pods[row] - totals.pods[row])
    for column, amount in question.asked.tolist():
        most = min(most, totals.spare.item(row, column) // amount)
    if most <= 0:
        return NO_ROOM
    if question.outright < 0 and question.outright != OPEN:
        return question.outright
    if question.outright != OPEN or counting.asks_nothing(plan):
        spread[ZONES] = most
        return NO_ROOM
    shape = int(pending.shape[row])
    if totals.loose[row] or shape == NOT_EXACT:
        return ASK
    if not pending.trusted and shape not in (NONE_PENDING, pending.own):
        load(block._replace(free=pending.settled), row, plan, SCRATCH)
        if counting.first(plan, SCRATCH, alone) < 0:
            return ASK
    load(block, row, plan, SCRATCH)
    return counting.count(plan, SCRATCH, most, alone, spread)


def _evaluated(block: RowBlock, row: int, plan: Plan) -> Answer:
    found = in_one_zone(block, row, plan) if plan.in_one_zone else None
    if found is not None:
        return found
    load(block, row, plan, SCRATCH)
    code = admit.decide(plan, SCRATCH)
    return code, tuple(SCRATCH.masks[: plan.steps]) if code >= 0 else (0,) * plan.steps


def in_one_zone(block: RowBlock, row: int, plan: Plan) -> Answer | None:
    """By `singlezone`, for a plan that it may try; None: it does not decide."""
    block = with_room(block, plan)
    stocks = (block.stock.item(row),)
    singlezone.decide(plan, FIELD, (row,), stocks, 1, block.free, block.allocatable, block.cells)
    code = int(FIELD[singlezone.CODE][0])
    if code == singlezone.UNDECIDED:
        return None
    return code, tuple([int(lane[0]) for lane in FIELD[singlezone.masks_at(plan) : singlezone.lanes(plan)]])


def load(block: RowBlock, row: int, plan: Plan, scratch: Work) -> None:
    block, stock = with_room(block, plan), block.stock.item(row)
    free, size, allocatable = block.free[row].tolist(), block.size[stock].tolist(), block.allocatable[stock].tolist()
    homeless, homeless_size = block.homeless[row].tolist(), block.homeless_size[stock].tolist()
    for place, column in enumerate(plan.columns):
        scratch.domains[place], scratch.homeless[place], scratch.homeless_size[place] = 0, 0, 0
        for zone in range(plan.zones):
            at = place * ZONES + zone
            scratch.size[at] = size[zone][column]
            scratch.free[at] = max(0, free[zone][column])
            scratch.allocatable[at] = allocatable[zone][column]
            if scratch.size[at] > 0:
                scratch.domains[place] |= 1 << zone
        scratch.homeless[place] = max(0, homeless[column])
        scratch.homeless_size[place] = homeless_size[column]
    scratch.cells[: plan.zones] = block.cells[row, : plan.zones].tolist()
    scratch.busy = int(block.busy[row])
    scratch.full_core_cpus = int(block.full_core_cpus[row])
    scratch.whole_cores = int(block.split_known[row])
