"""The most common case for 64 rows side by side: every container in a zone that has room for all it asks.

`surveying` calls it for tables of all rows; it is the machine code twin of `directarrays`. A resource of a zone is a
lane of numbers, one for each row, so that processors compare and divide several of them at once. Lanes hold floats:
amounts up to 2^52 are whole there too, and need not be converted to be divided. Rows where anything else could matter
stay `GENERAL`. No function is called row by row: handing arrays over takes longer than looking at a row. Part of the
row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import UNFIT
from numalign.placement.kernels.plans import RESTRICTED, SINGLE, Plan
from numalign.placement.kernels.scoring import LARGE, SHIFT, WHOLE
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import BALANCED, FEWEST_ZONES, MOST

ABREAST: Final = 64
WIDER: Final = -11
"""As `GENERAL`, where single zones are known not to do."""
SHORT, FOUND, LOST, COUNT, FIRST, SECOND, TOTAL, SCORED, ROOM = range(9)
"""Lanes: whether the zone at hand is out, a zone is found, none ever will be; sums of `scoring` for the container and
for the pod; then for each zone and resource what is free and what there is."""


class Zoned(NamedTuple):
    """The columns of a `RowBlock` that are looked at."""

    free: Any
    size: Any
    allocatable: Any
    cells: Any


def lanes_for(plan: Plan) -> Any:
    return np.empty((ROOM + 2 * plan.zones * plan.places, ABREAST), np.float64)


def decide_abreast(
    plan: Plan, lanes: Any, rows: Any, count: int, zoned: Zoned, every: Any, codes: Any, masks: Any
) -> None:
    """Codes or scores of the first `count` rows, and masks by [step, number]; those with a code in `LOST` keep it.

    `every`: the lanes of all rows, where these are neighbours, or None."""
    loaded = 0
    for lane in range(ABREAST):
        lanes[TOTAL, lane], lanes[SCORED, lane] = 0.0, 0.0
    for step in range(plan.steps):
        if plan.memory[step + 1] == plan.memory[step] and plan.cpus[step] == 0:
            for lane in range(ABREAST):
                masks[step, lane] = 0 if plan.policy == SINGLE else plan.every
            continue
        begin_step(lanes, count)
        for rank in range(plan.zones):
            if rank == loaded:
                load_zone(plan, lanes, rank, rows, count, zoned, every)
                loaded += 1
            look(plan, lanes, step, rank, rows, count, zoned.cells)
            if settle(plan, lanes, step, rank, masks) == 0:
                break
        give_up(plan, lanes, step, rows, count, zoned)
        sum_up(plan, lanes)
    conclude(plan, lanes, codes, masks)


def conclude(plan: Plan, lanes: Any, codes: Any, masks: Any) -> None:
    """Twin of `scoring.summed_up`; rows that are out have no masks."""
    for lane in range(ABREAST):
        mean = np.floor(lanes[TOTAL, lane] / max(1.0, lanes[SCORED, lane]))
        score = max(1.0, min(100.0, mean)) if lanes[SCORED, lane] > 0.0 else 100.0
        codes[lane] = int(lanes[LOST, lane] if lanes[LOST, lane] < 0.0 else score)
    for step in range(plan.steps):
        for lane in range(ABREAST):
            masks[step, lane] = 0 if lanes[LOST, lane] < 0.0 else masks[step, lane]


def begin_step(lanes: Any, count: int) -> None:
    for lane in range(ABREAST):
        # Lanes beyond the last row, and rows that are out already, are no longer looked for.
        lanes[FOUND, lane] = 1.0 if lane >= count or lanes[LOST, lane] < 0.0 else 0.0
        lanes[COUNT, lane], lanes[FIRST, lane], lanes[SECOND, lane] = 0.0, 0.0, 0.0


def load_zone(plan: Plan, lanes: Any, rank: int, rows: Any, count: int, zoned: Zoned, every: Any) -> None:
    zone, free, allocatable = np.uint32(plan.zone_order[rank]), zoned.free, zoned.allocatable
    first = ROOM + 2 * rank * plan.places
    if every is not None:
        start = int(rows[0])
        for place in range(plan.places):
            column = np.uint32(plan.columns[place])
            copy_lane(every.free[zone, column], start, lanes[np.uint32(first + 2 * place)])
            copy_lane(every.allocatable[zone, column], start, lanes[np.uint32(first + 2 * place + 1)])
        return
    for place in range(plan.places):
        room, column = np.uint32(first + 2 * place), np.uint32(plan.columns[place])
        for lane in range(count):
            lanes[room, lane] = float(max(0, free[np.uint32(rows[lane]), zone, column]))
        for lane in range(count):
            lanes[room + np.uint32(1), lane] = float(allocatable[np.uint32(rows[lane]), zone, column])
    # Whatever else lay there might be numbers that processors are slow with.
    for number in range(first, first + 2 * plan.places):
        for lane in range(count, ABREAST):
            lanes[number, lane] = 0.0


def copy_lane(whole: Any, start: int, lane: Any) -> None:
    for at in range(ABREAST):
        lane[at] = whole[np.uint32(start + at)]


def look(plan: Plan, lanes: Any, step: int, rank: int, rows: Any, count: int, cells: Any) -> None:
    """Which rows have no room in this zone, or have one already."""
    zone = plan.zone_order[rank]
    for lane in range(ABREAST):
        lanes[SHORT, lane] = lanes[FOUND, lane]
    if plan.memory[step] < plan.devices[step]:
        for lane in range(count):
            if cells[np.uint32(rows[lane]), zone] != 1 << zone:
                lanes[SHORT, lane] = 1.0
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = float(plan.cpus[step] if cpus else plan.amounts[item])
        room = ROOM + 2 * (rank * plan.places + place)
        for lane in range(ABREAST):
            short = 1.0 if lanes[room, lane] < need else 0.0
            lanes[SHORT, lane] = max(lanes[SHORT, lane], short)


def settle(plan: Plan, lanes: Any, step: int, rank: int, masks: Any) -> int:
    """Rows with room in this zone take it; how many are left without one."""
    mask, settled, left = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << plan.zone_order[rank], 0, 0
    for lane in range(ABREAST):
        # Short are all that have one already.
        lanes[FOUND, lane] += 1.0 - lanes[SHORT, lane]
        settled += int(lanes[SHORT, lane] == 0.0)
        left += int(lanes[FOUND, lane] == 0.0)
    if settled == 0:
        return left
    for lane in range(ABREAST):
        masks[step, lane] = mask if lanes[SHORT, lane] == 0.0 else masks[step, lane]
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = float(plan.cpus[step] if cpus else plan.amounts[item])
        room = ROOM + 2 * (rank * plan.places + place)
        if need == 0.0:
            continue
        if plan.strategy == BALANCED:
            add_parts(plan, lanes, place, room, need)
        else:
            add_shares(plan, lanes, place, room, need)
        for lane in range(ABREAST if step + 1 < plan.steps else 0):
            lanes[room, lane] -= need * (1.0 - lanes[SHORT, lane])
    return left


def add_shares(plan: Plan, lanes: Any, place: int, room: int, need: float) -> None:
    """Twin of `scoring.counted`."""
    own = float(plan.weights[place])
    for lane in range(ABREAST):
        there = lanes[room + 1, lane]
        weight = own if there > 0.0 and lanes[SHORT, lane] == 0.0 else 0.0
        scale = 1.0 / (1 << SHIFT) if there > LARGE else 1.0
        share = np.floor((lanes[room, lane] - need) * scale) * 100.0 / np.floor(max(1.0, there) * scale)
        lanes[FIRST, lane] += np.floor(min(share, 100.0)) * weight
        lanes[SECOND, lane] += weight


def add_parts(plan: Plan, lanes: Any, place: int, room: int, need: float) -> None:
    """The same for `BALANCED`, in whole numbers, as ten thousand times an amount may be none of a float's."""
    for lane in range(ABREAST if plan.weights[place] else 0):
        if lanes[SHORT, lane] == 0.0 and lanes[room + 1, lane] > 0.0:
            shift = SHIFT if lanes[room + 1, lane] > LARGE else 0
            there = int(lanes[room + 1, lane]) >> shift
            used = max(0, there - (int(lanes[room, lane] - need) >> shift)) * WHOLE // there
            lanes[COUNT, lane] += 1.0
            lanes[FIRST, lane] += float(used)
            lanes[SECOND, lane] += float(used * used)


def sum_up(plan: Plan, lanes: Any) -> None:
    """Twin of `scoring.combined`, for masks of one zone: shares of weights first, then what is not made of them."""
    sign, start = (-1.0, 100.0) if plan.strategy == MOST else (1.0, 0.0)
    for lane in range(ABREAST if plan.strategy != BALANCED else 0):
        counts = 1.0 if lanes[SECOND, lane] > 0.0 else 0.0
        mean = np.floor(lanes[FIRST, lane] / max(1.0, lanes[SECOND, lane]))
        share = 100.0 if plan.strategy == FEWEST_ZONES else mean
        lanes[TOTAL, lane] += (start + sign * share) * counts
        lanes[SCORED, lane] += counts
    for lane in range(ABREAST if plan.strategy == BALANCED else 0):
        count, first = lanes[COUNT, lane], lanes[FIRST, lane]
        if count > 0.0:
            spread = int(np.sqrt(count * lanes[SECOND, lane] - first * first)) // int(count)
            lanes[TOTAL, lane] += float(100 - spread // (WHOLE // 100))
            lanes[SCORED, lane] += 1.0


def give_up(plan: Plan, lanes: Any, step: int, rows: Any, count: int, zoned: Zoned) -> None:
    """Rows without a zone: twin of the last lines of `simple.first_zone`, where they need no second look."""
    for lane in range(count):
        if lanes[FOUND, lane] > 0.0:
            continue
        lanes[LOST, lane] = float(GENERAL)
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
        if sure:
            lanes[LOST, lane] = float(UNFIT if one_zone and plan.policy >= RESTRICTED else WIDER)
