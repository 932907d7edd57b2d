"""All rows of a kind in one pass: the node as a whole first, then its zones, 256 rows at a time.

`compiled` compiles it for shapes that were never asked about before. What it finds goes straight into the shape's
table; rows of other kinds, and rows that take more than a look at single zones, are handed back. Its twin for NumPy is
`arrays.survey`. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import ABREAST, NO_ROOM, Lanes, Nodes, Outcomes
from numalign.placement.kernels.lanes import LOST, Zoned, asks_nothing, decide_abreast, field_for, mask_of_nothing
from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import BALANCED
from numalign.placement.kernels.wholly import TORN, WHERE, Layout, at_spare, decide_wholly, room_for_asks, sum_asks

OTHER: Final = -10
"""Instead of a code: the row is of another kind."""
MANY: Final = 8
"""Rows from which it pays to look at them abreast."""
DIRECT, SIMPLE, BY_THE_BOOK = range(3)
"""Stages of a row, from the most common case to all rules: `direct`, `simple` and `walk`."""


class Scratch(NamedTuple):
    """What a survey works with; its caller owns it."""

    field: Any
    """See `abreast`."""
    found: Any
    zones: Any
    some: Any
    left: Any
    asked: Any
    """See `wholly`."""


def scratch(plan: Plan, rows: int) -> Scratch:
    found, zones = np.empty(ABREAST, np.int32), np.zeros((plan.steps, ABREAST), np.uint8)
    some, left = np.empty(rows, np.int32), np.empty((2, rows), np.int32)
    return Scratch(field_for(plan), found, zones, some, left, room_for_asks())


def suits(plan: Plan) -> bool:
    """Whether zones with room say everything: no device stands alone, which could lie in no zone."""
    if not plan.plain or plan.as_a_whole or plan.full_cores:
        return False
    for step in range(plan.steps):
        if plan.cpus[step] == 0 and plan.memory[step] == plan.devices[step] < plan.memory[step + 1]:
            return False
    return True


def suits_lanes(plan: Plan) -> bool:
    """Whether `wholly` may be asked first, too, which counts no parts of `BALANCED`."""
    return suits(plan) and bool(plan.strategy != BALANCED)


def decide_rows(plan: Plan, zoned: Zoned, rows: Any, codes: Any, masks: Any) -> int:
    """Codes and masks by number, `GENERAL` or `WIDER` where they are not for us; the stage where the former go on."""
    if not suits(plan):
        return leave(plan, codes)
    field, found, zones = field_for(plan), np.empty(ABREAST, np.int32), np.zeros((plan.steps, ABREAST), np.uint8)
    for start in range(0, len(rows), ABREAST):
        count = min(ABREAST, len(rows) - start)
        decide_abreast(plan, field, rows[start : start + count], count, zoned, found, zones)
        for number in range(count):
            codes[start + number] = found[number]
            for step in range(plan.steps):
                masks[start + number, step] = zones[step, number]
    return SIMPLE


def leave(plan: Plan, codes: Any) -> int:
    """Nothing is decided here."""
    for number in range(len(codes)):
        codes[number] = GENERAL
    return DIRECT if plan.plain else BY_THE_BOOK


def survey_rows(plan: Plan, nodes: Nodes, zoned: Zoned, rows: Any, answers: Outcomes, scratch: Scratch) -> Any:
    """Codes and masks by row. `left` has two parts: rows that are not decided, and those of other kinds; how many."""
    undecided, others, suited = 0, 0, suits(plan)
    for start in range(0, len(rows), ABREAST):
        count, others = with_room(nodes, rows, start, answers.code_or_score, scratch.some, scratch.left, others)
        undecided = look_into(plan, nodes, zoned, scratch.some[:count], suited, answers, scratch, undecided)
    return undecided, others


def look_into(
    plan: Plan, nodes: Nodes, zoned: Zoned, some: Any, suited: bool, answers: Outcomes, scratch: Scratch, undecided: int
) -> int:
    """Up to 256 rows, container by container; how many are not decided by now."""
    codes, masks = answers
    field, found, zones, _, left, _ = scratch
    for number in range(len(some)):
        found[number] = GENERAL
    if suited:
        decide_abreast(plan, field, some, len(some), zoned, found, zones)
    for number in range(len(some)):
        row = np.uint32(some[number])
        if found[number] <= GENERAL or nodes.loose[row]:
            left[0, undecided] = row
            undecided += 1
            continue
        codes[row] = found[number]
        for step in range(plan.steps):
            masks[row, step] = zones[step, number]
    return undecided


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


def survey_all(
    plan: Plan, nodes: Nodes, zoned: Zoned, every: Lanes, rows: Any, answers: Outcomes, scratch: Scratch
) -> Any:
    """The same for all rows there are, by their lanes, of a plan that suits."""
    _, found, _, some, left, asked = scratch
    field, layout, first = every.field, Layout(*every.free.shape), sum_asks(plan, asked)
    undecided, others, torn = 0, 0, 0
    follow(nodes, zoned, every)
    for start in range(0, len(rows), ABREAST):
        these = rows[start : start + ABREAST]
        exclude(nodes, field, layout, start)
        decide_wholly(plan, asked, first, field, layout, start, these, zoned, found)
        write(plan, field, found, nodes.loose, start, len(these), answers)
        for lane in range(len(these) if count_odd(found, nodes.loose, start, len(these)) > 0 else 0):
            row, code = np.uint32(start + lane), found[lane]
            if code == OTHER:
                left[1, others] = row
                others += 1
            elif code == TORN:
                some[torn] = row
                torn += 1
            elif code <= GENERAL or (nodes.loose[row] and code != NO_ROOM):
                left[0, undecided] = row
                undecided += 1
    for start in range(0, torn, ABREAST):
        these = some[start : min(torn, start + ABREAST)]
        undecided = look_into(plan, nodes, zoned, these, True, answers, scratch, undecided)
    return undecided, others


def count_odd(found: Any, loose: Any, start: int, count: int) -> int:
    """How many rows may not be decided yet."""
    odd = 0
    for lane in range(count):
        odd += int(found[np.uint64(lane)] <= GENERAL)
    for row in range(start, start + count):
        odd += int(loose[np.uint64(row)])
    return odd


def write(plan: Plan, field: Any, found: Any, loose: Any, start: int, count: int, answers: Outcomes) -> None:
    """The codes of rows that are decided; all containers that ask for anything are in one zone."""
    codes, masks = answers
    for lane in range(count):
        row, code = np.uint64(start + lane), found[np.uint64(lane)]
        decided = code == NO_ROOM or (code > GENERAL and not loose[row])
        codes[row] = code if decided else codes[row]
    for step in range(plan.steps):
        asks = not asks_nothing(plan, step)
        for lane in range(count):
            idle = mask_of_nothing(plan) if found[np.uint64(lane)] >= 0 else 0
            mask = np.uint8(np.int32(field[np.uint64(WHERE + lane)])) if asks else idle
            masks[np.uint64(start + lane), step] = mask


def exclude(nodes: Nodes, field: Any, layout: Layout, start: int) -> None:
    """Note which of the next rows have no room as a whole, and which are of other kinds."""
    first, number = np.uint64(start), nodes.number
    for lane in range(np.uint64(ABREAST)):
        short = nodes.pods[first + lane] >= nodes.most_pods[first + lane]
        field[np.uint64(LOST) + lane] = float(NO_ROOM) if short else 0.0
    for place in range(len(nodes.columns)):
        spare, amount = np.uint64(at_spare(layout, nodes.columns[place]) + start), float(nodes.amounts[place])
        for lane in range(np.uint64(ABREAST)):
            lost = float(NO_ROOM) if field[spare + lane] < amount else 0.0
            field[np.uint64(LOST) + lane] = min(field[np.uint64(LOST) + lane], lost)
    for lane in range(np.uint64(ABREAST)):
        same = nodes.kind[first + lane] == number
        field[np.uint64(LOST) + lane] = field[np.uint64(LOST) + lane] if same else float(OTHER)


def follow(nodes: Nodes, zoned: Zoned, every: Lanes) -> None:
    """Copy the rows that lanes are behind with."""
    zones, columns, _ = every.free.shape
    for number in range(len(every.behind)):
        row = np.uint32(every.behind[number])
        for column in range(columns):
            every.spare[column, row] = float(nodes.offered[row, column] - nodes.requested[row, column])
            for zone in range(zones):
                every.free[zone, column, row] = float(max(0, zoned.free[row, zone, column]))
                every.allocatable[zone, column, row] = float(zoned.allocatable[row, zone, column])
        for zone in range(zones):
            odd = zoned.cells[row, zone] != 1 << zone
            for column in range(columns):
                odd |= zoned.allocatable[row, zone, column] <= 0 < zoned.free[row, zone, column]
            every.odd[zone, row] = 1.0 if odd else 0.0
