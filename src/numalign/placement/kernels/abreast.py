"""The most common case for 64 rows side by side: every container in a zone that has room for all it asks.

`surveying` calls it for tables of all rows; it is the machine code twin of `directarrays`. A resource of a zone is a
lane of numbers, one for each row, so that processors compare and divide eight of them at once. Rows where anything else
could matter stay `GENERAL`. No function is called row by row: handing arrays over takes longer than looking at a row.
Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import UNFIT
from numalign.placement.kernels.plans import RESTRICTED, SINGLE, Plan
from numalign.placement.kernels.scoring import LARGE, SHIFT, WHOLE
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import BALANCED, FEWEST_ZONES, MOST

ABREAST: Final = 64
SHORT, FOUND, LOST, COUNT, FIRST, SECOND, TOTAL, SCORED, ROOM = range(9)
"""Lanes: whether the zone at hand is out, a zone is found, none ever will be; sums of `scoring` for the container and
for the pod; then for each zone and resource what is free and what there is."""


class Zoned(NamedTuple):
    """The columns of a `RowBlock` that are looked at."""

    free: Any
    size: Any
    allocatable: Any
    cells: Any


def lanes_for(plan: Plan) -> int:
    return ROOM + 2 * plan.zones * plan.places


def decide_abreast(plan: Plan, lanes: Any, rows: Any, count: int, zoned: Zoned, codes: Any, masks: Any) -> None:
    """Codes or scores of the first `count` rows, with their masks."""
    loaded = 0
    for lane in range(ABREAST):
        lanes[LOST, lane], lanes[TOTAL, lane], lanes[SCORED, lane] = 0, 0, 0
    for step in range(plan.steps):
        if plan.memory[step + 1] == plan.memory[step] and plan.cpus[step] == 0:
            for lane in range(count):
                masks[lane, step] = 0 if plan.policy == SINGLE else plan.every
            continue
        begin_step(lanes, count)
        for rank in range(plan.zones):
            if rank == loaded:
                load_zone(plan, lanes, rank, rows, count, zoned)
                loaded += 1
            look(plan, lanes, step, rank, rows, count, zoned.cells)
            if settle(plan, lanes, step, rank, count, masks) == 0:
                break
        give_up(plan, lanes, step, rows, count, zoned)
        sum_up(plan, lanes)
    for lane in range(count):
        mean = lanes[TOTAL, lane] // max(1, lanes[SCORED, lane])
        score = max(1, min(100, mean)) if lanes[SCORED, lane] > 0 else 100
        codes[lane] = lanes[LOST, lane] if lanes[LOST, lane] < 0 else score
        for step in range(plan.steps if lanes[LOST, lane] < 0 else 0):
            masks[lane, step] = 0


def begin_step(lanes: Any, count: int) -> None:
    for lane in range(ABREAST):
        # Lanes beyond the last row, and rows that are out already, are no longer looked for.
        lanes[FOUND, lane] = int(lane >= count or lanes[LOST, lane] < 0)
        lanes[COUNT, lane], lanes[FIRST, lane], lanes[SECOND, lane] = 0, 0, 0


def load_zone(plan: Plan, lanes: Any, rank: int, rows: Any, count: int, zoned: Zoned) -> None:
    zone, free, allocatable = plan.zone_order[rank], zoned.free, zoned.allocatable
    for place in range(plan.places):
        room, column = ROOM + 2 * (rank * plan.places + place), plan.columns[place]
        for lane in range(count):
            lanes[room, lane] = max(0, free[np.uint32(rows[lane]), zone, column])
        for lane in range(count):
            lanes[room + 1, lane] = allocatable[np.uint32(rows[lane]), zone, column]


def look(plan: Plan, lanes: Any, step: int, rank: int, rows: Any, count: int, cells: Any) -> None:
    """Which rows have no room in this zone, or have one already."""
    zone = plan.zone_order[rank]
    for lane in range(ABREAST):
        lanes[SHORT, lane] = lanes[FOUND, lane]
    if plan.memory[step] < plan.devices[step]:
        for lane in range(count):
            lanes[SHORT, lane] |= int(cells[np.uint32(rows[lane]), zone] != 1 << zone)
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = plan.cpus[step] if cpus else plan.amounts[item]
        room = ROOM + 2 * (rank * plan.places + place)
        for lane in range(ABREAST):
            lanes[SHORT, lane] |= int(lanes[room, lane] < need)


def settle(plan: Plan, lanes: Any, step: int, rank: int, count: int, masks: Any) -> int:
    """Rows with room in this zone take it; how many are left without one."""
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = plan.cpus[step] if cpus else plan.amounts[item]
        room = ROOM + 2 * (rank * plan.places + place)
        if need == 0:
            continue
        if plan.strategy == BALANCED:
            add_parts(plan, lanes, place, room, need)
        else:
            add_shares(plan, lanes, place, room, need)
        for lane in range(ABREAST if step + 1 < plan.steps else 0):
            lanes[room, lane] -= 0 if lanes[SHORT, lane] else need
    mask = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << plan.zone_order[rank]
    for lane in range(count):
        if lanes[SHORT, lane] == 0:
            masks[lane, step] = mask
    left = 0
    for lane in range(ABREAST):
        lanes[FOUND, lane] |= 1 - lanes[SHORT, lane]
        left += 1 - lanes[FOUND, lane]
    return left


def add_shares(plan: Plan, lanes: Any, place: int, room: int, need: int) -> None:
    """Twin of `scoring.counted`."""
    own = plan.weights[place]
    for lane in range(ABREAST):
        there = lanes[room + 1, lane]
        weight = own if there > 0 and lanes[SHORT, lane] == 0 else 0
        shift = SHIFT if there > LARGE else 0
        share = float(lanes[room, lane] - need >> shift) * 100.0 / float(max(1, there) >> shift)
        lanes[FIRST, lane] += int(min(share, 100.0)) * weight
        lanes[SECOND, lane] += weight


def add_parts(plan: Plan, lanes: Any, place: int, room: int, need: int) -> None:
    """The same for `BALANCED`."""
    for lane in range(ABREAST if plan.weights[place] else 0):
        if lanes[SHORT, lane] == 0 and lanes[room + 1, lane] > 0:
            shift = SHIFT if lanes[room + 1, lane] > LARGE else 0
            there = lanes[room + 1, lane] >> shift
            used = max(0, there - (lanes[room, lane] - need >> shift)) * WHOLE // there
            lanes[COUNT, lane] += 1
            lanes[FIRST, lane] += used
            lanes[SECOND, lane] += used * used


def sum_up(plan: Plan, lanes: Any) -> None:
    """Twin of `scoring.combined`, for masks of one zone: shares of weights first, then what is not made of them."""
    sign, start = (-1, 100) if plan.strategy == MOST else (1, 0)
    for lane in range(ABREAST if plan.strategy != BALANCED else 0):
        counts = int(lanes[SECOND, lane] > 0)
        share = 100 if plan.strategy == FEWEST_ZONES else int(lanes[FIRST, lane] / max(1, lanes[SECOND, lane]))
        lanes[TOTAL, lane] += (start + sign * share) * counts
        lanes[SCORED, lane] += counts
    for lane in range(ABREAST if plan.strategy == BALANCED else 0):
        count, first = lanes[COUNT, lane], lanes[FIRST, lane]
        if count > 0:
            spread = int(np.sqrt(count * lanes[SECOND, lane] - first * first)) // count
            lanes[TOTAL, lane] += 100 - spread // (WHOLE // 100)
            lanes[SCORED, lane] += 1


def give_up(plan: Plan, lanes: Any, step: int, rows: Any, count: int, zoned: Zoned) -> None:
    """Rows without a zone: twin of the last lines of `simple.first_zone`, where they need no second look."""
    for lane in range(count):
        if lanes[FOUND, lane]:
            continue
        lanes[LOST, lane] = GENERAL
        if plan.policy < RESTRICTED:
            continue
        row, differing, sure, one_zone = np.uint32(rows[lane]), 0, True, plan.policy == SINGLE
        for zone in range(plan.zones):
            differing |= int(zoned.cells[row, zone]) ^ 1 << zone
            one_zone = one_zone or 0 < plan.cpus[step] <= zoned.size[row, zone, plan.columns[0]]
        for item in range(plan.devices[step], plan.memory[step + 1]):
            column, largest = plan.columns[plan.places_asked[item]], 0
            for zone in range(plan.zones):
                largest = max(largest, zoned.size[row, zone, column])
            sure = sure and largest > 0
            one_zone = one_zone or largest >= plan.amounts[item]
        if plan.memory[step] < plan.devices[step] and differing:
            sure = False
        if sure and one_zone:
            lanes[LOST, lane] = UNFIT
