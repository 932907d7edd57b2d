"""All rows of a kind in one pass: the node as a whole first, then its zones, 64 rows at a time.

`compiled` compiles it for shapes that were never asked about before. What it finds goes straight into the shape's
table; rows of other kinds, and rows that take more than a look at single zones, are handed back. Its twin for NumPy is
`arrays.survey`. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from numalign.placement.kernels.abreast import ABREAST, Zoned, decide_abreast, lanes_for
from numalign.placement.kernels.block import NO_ROOM, Nodes
from numalign.placement.kernels.plans import SINGLE, Plan
from numalign.placement.kernels.simple import GENERAL

MANY: Final = 8
"""Rows from which it pays to look at them abreast."""
DIRECT, SIMPLE, BY_THE_BOOK = range(3)
"""Stages of a row, from the most common case to all rules: `direct`, `simple` and `walk`."""


def suits(plan: Plan) -> bool:
    """Whether zones with room say everything: no device stands alone, which could lie in no zone."""
    if not plan.plain or plan.as_a_whole or plan.full_cores:
        return False
    for step in range(plan.steps):
        if plan.cpus[step] == 0 and plan.memory[step] == plan.devices[step] < plan.memory[step + 1]:
            return False
    return True


def decide_rows(plan: Plan, zoned: Zoned, rows: Any, codes: Any, masks: Any) -> int:
    """Codes and masks by number, `GENERAL` where they are not for us; the stage at which rows that are left go on."""
    if not suits(plan):
        return leave(plan, codes)
    lanes = np.empty((lanes_for(plan), ABREAST), np.int64)
    for start in range(0, len(rows), ABREAST):
        end = min(start + ABREAST, len(rows))
        decide_abreast(plan, lanes, rows[start:end], end - start, zoned, codes[start:end], masks[start:end])
    return SIMPLE if plan.policy == SINGLE else BY_THE_BOOK


def leave(plan: Plan, codes: Any) -> int:
    """Nothing is decided here."""
    for number in range(len(codes)):
        codes[number] = GENERAL
    return DIRECT if plan.plain else BY_THE_BOOK


def survey_rows(
    plan: Plan, nodes: Nodes, zoned: Zoned, rows: Any, codes: Any, masks: Any, left: Any
) -> tuple[int, int]:
    """Codes and masks by row. `left` has two parts: rows that are not decided, and those of other kinds; how many."""
    some, found = np.empty(ABREAST, np.int32), np.empty(ABREAST, np.int32)
    zones, lanes = np.zeros((ABREAST, plan.steps), np.uint8), np.empty((lanes_for(plan), ABREAST), np.int64)
    undecided, others, suited, loose = 0, 0, suits(plan), nodes.loose
    for start in range(0, len(rows), ABREAST):
        count, others = with_room(nodes, rows, start, codes, some, left, others)
        for number in range(count):
            found[number] = GENERAL
        if suited:
            decide_abreast(plan, lanes, some, count, zoned, found, zones)
        for number in range(count):
            row = np.uint32(some[number])
            if found[number] == GENERAL or loose[row]:
                left[0, undecided] = row
                undecided += 1
                continue
            codes[row] = found[number]
            for step in range(plan.steps):
                masks[row, step] = zones[number, step]
    return undecided, others


def with_room(nodes: Nodes, rows: Any, start: int, codes: Any, some: Any, left: Any, others: int) -> tuple[int, int]:
    """Of the next rows note those to look into, and those of other kinds."""
    number_asked, kind, _, pods, most_pods, offered, requested, columns, amounts = nodes
    count = 0
    for number in range(start, min(start + ABREAST, len(rows))):
        row = np.uint32(rows[number])
        if kind[row] != number_asked:
            left[1, others] = row
            others += 1
            continue
        room = pods[row] < most_pods[row]
        for place in range(len(columns)):
            column = np.uint32(columns[place])
            if requested[row, column] + amounts[place] > offered[row, column]:
                room = False
                break
        if room:
            some[count] = row
            count += 1
        else:
            codes[row] = NO_ROOM
    return count, others
