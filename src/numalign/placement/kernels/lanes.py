"""The most common case for many rows side by side: every container in a zone that has room for all it asks.

`surveying` calls it for rows from anywhere, container by container; it is the machine code twin of `directarrays`. A
resource of a zone is a lane of numbers, one for each row, so that processors compare and divide several of them at
once. Lanes hold floats: amounts up to 2^52 are whole there too, and need not be converted to be divided. Rows where
anything else could matter stay `GENERAL`. All lanes lie in one array, the field, and are known by where they begin:
handing arrays from function to function takes longer than looking at a row. Part of the row kernels: see `work` for
their language."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import ABREAST, UNFIT
from numalign.placement.kernels.plan import RESTRICTED, SINGLE, ZONES, Plan
from numalign.placement.kernels.scoring import LARGE, SHIFT, WHOLE
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import BALANCED, FEWEST_ZONES, MOST

STEP: Final = 16
"""Lanes are filled up to a multiple of this."""
STRIDE: Final = ABREAST + STEP
"""From lane to lane: with a power of two they would all fall upon the same places of a cache."""
WIDER: Final = -11
"""As `GENERAL`, where single zones are known not to do."""
SHORT, FOUND, LOST, COUNT, FIRST, SECOND, TOTAL, SCORED, GROUPED = range(0, 9 * STRIDE, STRIDE)
"""Where lanes begin: whether the zone at hand is out, a zone is found, none ever will be; sums of `scoring` for the
container and for the pod; whether a zone's memory is in a group, zone by zone."""
ROOM: Final = GROUPED + ZONES * STRIDE
"""From here on, for each zone and resource, what is free and what there is."""


class Zoned(NamedTuple):
    """The columns of a `RowBlock` that are looked at."""

    free: Any
    size: Any
    allocatable: Any
    cells: Any


def field_for(plan: Plan) -> Any:
    return np.empty(ROOM + 2 * plan.zones * plan.places * STRIDE)


def decide_abreast(plan: Plan, field: Any, rows: Any, count: int, zoned: Zoned, codes: Any, masks: Any) -> None:
    """Codes or scores of the first `count` rows, and masks by [step, number]."""
    loaded, span = 0, span_of(count)
    for lane in range(span):
        field[LOST + lane] = 0.0 if lane < count else float(UNFIT)
    clear(field, TOTAL, span)
    clear(field, SCORED, span)
    for step in range(plan.steps):
        if asks_nothing(plan, step):
            for lane in range(span):
                masks[step, lane] = mask_of_nothing(plan)
            continue
        begin_step(field, span)
        left = count
        for rank in range(plan.zones):
            if rank == loaded:
                load_zone(plan, field, span, rank, rows, count, zoned)
                loaded += 1
            look(plan, field, span, step, rank)
            left = settle(plan, field, span, step, rank, masks)
            if left == 0:
                break
        if left > 0:
            give_up(plan, field, step, rows, count, zoned)
        sum_up(plan, field, span)
    conclude(plan, field, span, codes, masks)


def asks_nothing(plan: Plan, step: int) -> bool:
    return bool(plan.memory[step + 1] == plan.memory[step] and plan.cpus[step] == 0)


def mask_of_nothing(plan: Plan) -> int:
    """Of a container that asks for nothing."""
    return 0 if plan.policy == SINGLE else plan.every


def mask_at(plan: Plan, rank: int) -> int:
    """Twin of `simple.stored`, of a container that asks for something."""
    return 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << plan.zone_order[rank]


def span_of(count: int) -> int:
    return min(ABREAST, (count + STEP - 1) // STEP * STEP)


def clear(field: Any, first: int, span: int) -> None:
    for lane in range(np.uint64(span)):
        field[np.uint64(first) + lane] = 0.0


def conclude(plan: Plan, field: Any, span: int, codes: Any, masks: Any) -> None:
    """Twin of `scoring.summed_up`; rows that are out have no masks."""
    for lane in range(np.uint64(span)):
        lost, scored = field[np.uint64(LOST) + lane], field[np.uint64(SCORED) + lane]
        mean = max(1.0, min(100.0, np.floor(field[np.uint64(TOTAL) + lane] / max(1.0, scored))))
        score = mean if scored > 0.0 else 100.0
        codes[lane] = np.int32(lost if lost < 0.0 else score)
    for step in range(plan.steps):
        for lane in range(np.uint64(span)):
            masks[step, lane] = 0 if codes[lane] < 0 else masks[step, lane]


def begin_step(field: Any, span: int) -> None:
    """Rows that are out already are no longer looked for."""
    for lane in range(np.uint64(span)):
        field[np.uint64(FOUND) + lane] = 1.0 if field[np.uint64(LOST) + lane] < 0.0 else 0.0
    clear(field, COUNT, span)
    clear(field, FIRST, span)
    clear(field, SECOND, span)


def load_zone(plan: Plan, field: Any, span: int, rank: int, rows: Any, count: int, zoned: Zoned) -> None:
    zone, free, allocatable = np.uint32(plan.zone_order[rank]), zoned.free, zoned.allocatable
    grouped = GROUPED + rank * STRIDE
    for lane in range(count):
        field[grouped + lane] = 0.0 if zoned.cells[np.uint32(rows[lane]), zone] == 1 << zone else 1.0
    for place in range(plan.places):
        at, column = at_place(plan, rank, place), np.uint32(plan.columns[place])
        for lane in range(count):
            field[np.uint64(at + lane)] = float(max(0, free[np.uint32(rows[lane]), zone, column]))
        for lane in range(count):
            field[np.uint64(at + STRIDE + lane)] = float(allocatable[np.uint32(rows[lane]), zone, column])
        # Whatever else lay there might be numbers that processors are slow with.
        for lane in range(count, span):
            field[at + lane], field[at + STRIDE + lane] = 0.0, 0.0


def at_place(plan: Plan, rank: int, place: int) -> int:
    """What is free; what there is comes next."""
    return ROOM + 2 * (rank * plan.places + place) * STRIDE


def look(plan: Plan, field: Any, span: int, step: int, rank: int) -> None:
    """Which rows have no room in this zone, or have one already."""
    if plan.memory[step] < plan.devices[step]:
        grouped = np.uint64(GROUPED + rank * STRIDE)
        for lane in range(np.uint64(span)):
            field[np.uint64(SHORT) + lane] = max(field[np.uint64(FOUND) + lane], field[grouped + lane])
    else:
        for lane in range(np.uint64(span)):
            field[np.uint64(SHORT) + lane] = field[np.uint64(FOUND) + lane]
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        need = float(plan.cpus[step] if cpus else plan.amounts[item])
        free = np.uint64(at_place(plan, rank, 0 if cpus else plan.places_asked[item]))
        for lane in range(np.uint64(span)):
            short = 1.0 if field[free + lane] < need else 0.0
            field[np.uint64(SHORT) + lane] = max(field[np.uint64(SHORT) + lane], short)


def settle(plan: Plan, field: Any, span: int, step: int, rank: int, masks: Any) -> int:
    """Rows with room in this zone take it; how many are left without one."""
    mask, settled, left = mask_at(plan, rank), 0, 0
    for lane in range(np.uint64(span)):
        # Short are all that have one already.
        found, short = field[np.uint64(FOUND) + lane], field[np.uint64(SHORT) + lane]
        field[np.uint64(FOUND) + lane] = found + 1.0 - short
        settled += int(short == 0.0)
        left += int(found + 1.0 - short == 0.0)
    if settled == 0:
        return left
    for lane in range(np.uint64(span)):
        masks[step, lane] = mask if field[np.uint64(SHORT) + lane] == 0.0 else masks[step, lane]
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = float(plan.cpus[step] if cpus else plan.amounts[item])
        if need == 0.0:
            continue
        free = at_place(plan, rank, place)
        if plan.strategy == BALANCED:
            add_parts(field, span, float(plan.weights[place]), free, need)
        else:
            add_shares(field, span, float(plan.weights[place]), np.uint64(free), need)
        if step + 1 < plan.steps:
            charge(field, span, np.uint64(free), need)
    return left


def charge(field: Any, span: int, free: Any, need: float) -> None:
    for lane in range(np.uint64(span)):
        field[free + lane] -= need * (1.0 - field[np.uint64(SHORT) + lane])


def add_shares(field: Any, span: int, weight: float, free: Any, need: float) -> None:
    """Twin of `scoring.counted`."""
    there = free + np.uint64(STRIDE)
    for lane in range(np.uint64(span)):
        most = field[there + lane]
        counts = weight if most > 0.0 and field[np.uint64(SHORT) + lane] == 0.0 else 0.0
        share = np.floor((field[free + lane] - need) * 100.0 / max(1.0, most))
        field[np.uint64(FIRST) + lane] += min(share, 100.0) * counts
        field[np.uint64(SECOND) + lane] += counts


def add_parts(field: Any, span: int, weight: float, free: int, need: float) -> None:
    """The same for `BALANCED`, in whole numbers, as ten thousand times an amount may be none of a float's."""
    there = free + STRIDE
    for lane in range(span if weight > 0.0 else 0):
        if field[SHORT + lane] == 0.0 and field[there + lane] > 0.0:
            shift = SHIFT if field[there + lane] > LARGE else 0
            most = int(field[there + lane]) >> shift
            used = max(0, most - (int(field[free + lane] - need) >> shift)) * WHOLE // most
            field[COUNT + lane] += 1.0
            field[FIRST + lane] += float(used)
            field[SECOND + lane] += float(used * used)


def sum_up(plan: Plan, field: Any, span: int) -> None:
    """Twin of `scoring.combined`, for masks of one zone: shares of weights first, then what is not made of them."""
    sign, start = (-1.0, 100.0) if plan.strategy == MOST else (1.0, 0.0)
    fixed = plan.strategy == FEWEST_ZONES
    for lane in range(np.uint64(span if plan.strategy != BALANCED else 0)):
        second = field[np.uint64(SECOND) + lane]
        counts = 1.0 if second > 0.0 else 0.0
        mean = np.floor(field[np.uint64(FIRST) + lane] / max(1.0, second))
        field[np.uint64(TOTAL) + lane] += (start + sign * (100.0 if fixed else mean)) * counts
        field[np.uint64(SCORED) + lane] += counts
    for lane in range(span if plan.strategy == BALANCED else 0):
        count, first = field[COUNT + lane], field[FIRST + lane]
        if count > 0.0:
            spread = int(np.sqrt(count * field[SECOND + lane] - first * first)) // int(count)
            field[TOTAL + lane] += float(100 - spread // (WHOLE // 100))
            field[SCORED + lane] += 1.0


def give_up(plan: Plan, field: Any, step: int, rows: Any, count: int, zoned: Zoned) -> None:
    """Rows without a zone: twin of the last lines of `simple.first_zone`, where they need no second look."""
    for lane in range(count):
        if field[FOUND + lane] > 0.0:
            continue
        field[LOST + lane] = float(GENERAL)
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
            field[LOST + lane] = float(UNFIT if one_zone and plan.policy >= RESTRICTED else WIDER)
