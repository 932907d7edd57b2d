"""The most common case, fast: every container in the best zone that has room for all it asks.

If one zone has room for everything, all lists agree on single zones, and the kubelet takes the best such zone under
every policy that aligns (engine spec 4). `scalar` and `compiled` try this before `admit`, because little of a row has
to be loaded for it. It never refuses a row: wherever anything else could matter, the answer is `UNDECIDED`.

Many rows are evaluated side by side, so that processors compare and divide several numbers at once: a survey of all
rows takes less than half of the time. What there is of a resource in a zone is a lane with a number for each row; all
lanes together are the field. Amounts up to 2^52 are exact as floats, too, and need not be converted to be divided. Part
of the row kernels: see `work` for their language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from numalign.placement.kernels.block import Amounts, Masks
from numalign.placement.kernels.plan import BALANCED, MOST_PLACES, MOST_STEPS, SINGLE, ZONES, Plan
from numalign.placement.kernels.scoring import combined, counted, percent, summed_up

UNDECIDED: Final = -9
LANES: Final = 64
"""Rows that `compiled` evaluates together."""
CODE, FOUND, SHORT, COUNTED, FIRST, SECOND, TOTAL, SCORED, GROUPED = range(9)
"""Lanes: the outcome, whether the container has a zone, whether the zone at hand is none for it; the sums that
`scoring.combined` takes for the container, and `scoring.summed_up` for the pod; by zone, whether its memory is in a
group."""
ROOM: Final = GROUPED + ZONES
"""The first of the lanes that say what is free, and what there is at all, by zone and place."""

MOST_LANES: Final = ROOM + 2 * ZONES * MOST_PLACES + MOST_STEPS

Field = list[list[float]] | NDArray[np.float64]
RowNumbers = Sequence[int] | NDArray[np.uint32]


def decide(
    plan: Plan,
    field: Field,
    rows: RowNumbers,
    stocks: RowNumbers,
    count: int,
    free: Amounts,
    allocatable: Amounts,
    cells: Masks,
) -> None:
    """Scores of the first `count` rows, or `UNDECIDED`, go to the lane `CODE`, masks to those from `masks_at` on."""
    code, found, total, scored = field[CODE], field[FOUND], field[TOTAL], field[SCORED]
    for lane in range(count):
        code[lane], total[lane], scored[lane] = 0.0, 0.0, 0.0
    loaded = 0
    for step in range(plan.steps):
        if plan.cpus[step] == 0 and plan.memory[step] == plan.memory[step + 1]:
            masks, mask = field[masks_at(plan) + step], 0 if plan.policy == SINGLE else plan.every
            for lane in range(count):
                masks[lane] = mask
            continue
        begin(field, count)
        left = count
        for rank in range(plan.zones):
            if left > 0 and rank == loaded:
                load(plan, field, rank, rows, stocks, count, free, allocatable, cells)
                loaded += 1
            if left > 0:
                look(plan, field, count, step, rank)
                left = settle(plan, field, count, step, rank)
        for lane in range(count if left else 0):
            code[lane] = UNDECIDED if found[lane] == 0.0 else code[lane]
        sum_up(plan, field, count)
    for lane in range(count):
        code[lane] = summed_up(int(total[lane]), int(scored[lane])) if code[lane] == 0.0 else code[lane]


def masks_at(plan: Plan) -> int:
    """The first of the lanes that masks go to, by step."""
    return ROOM + 2 * plan.zones * plan.places


def lanes(plan: Plan) -> int:
    """How many there are for a plan."""
    return masks_at(plan) + plan.steps


def room_at(plan: Plan, rank: int, place: int) -> int:
    """The lane of what is free; what there is comes next."""
    return ROOM + 2 * (rank * plan.places + place)


def begin(field: Field, count: int) -> None:
    """Another container. Rows that are undecided already are no longer looked for."""
    code, found, resources, first, second = field[CODE], field[FOUND], field[COUNTED], field[FIRST], field[SECOND]
    for lane in range(count):
        found[lane] = 1.0 if code[lane] < 0.0 else 0.0
        resources[lane], first[lane], second[lane] = 0.0, 0.0, 0.0


def load(
    plan: Plan,
    field: Field,
    rank: int,
    rows: RowNumbers,
    stocks: RowNumbers,
    count: int,
    free: Amounts,
    allocatable: Amounts,
    cells: Masks,
) -> None:
    """The zone that comes next. What is negative counts as nothing: pods hold more than the node has."""
    zone, grouped = plan.zone_order[rank], field[GROUPED + rank]
    for lane in range(count):
        grouped[lane] = 0.0 if cells[rows[lane], zone] == 1 << zone else 1.0
    for place in range(plan.places):
        at, column = room_at(plan, rank, place), plan.columns[place]
        left, there = field[at], field[at + 1]
        for lane in range(count):
            left[lane] = float(max(0, free[rows[lane], zone, column]))
            there[lane] = float(allocatable[stocks[lane], zone, column])


def look(plan: Plan, field: Field, count: int, step: int, rank: int) -> None:
    """Which rows have no room in this zone, or have one already. A device that lies in no zone has room in none."""
    short, found, grouped = field[SHORT], field[FOUND], field[GROUPED + rank]
    pins = plan.memory[step] < plan.devices[step]
    cpus, free = float(plan.cpus[step]), field[room_at(plan, rank, 0)]
    for lane in range(count):
        taken = max(found[lane], grouped[lane]) if pins else found[lane]
        short[lane] = 1.0 if free[lane] < cpus else taken
    for item in range(plan.memory[step], plan.memory[step + 1]):
        need, free = float(plan.amounts[item]), field[room_at(plan, rank, plan.places_asked[item])]
        for lane in range(count):
            short[lane] = 1.0 if free[lane] < need else short[lane]


def settle(plan: Plan, field: Field, count: int, step: int, rank: int) -> int:
    """Rows with room in this zone take it, and are scored and charged; how many are left without one."""
    short, found, masks = field[SHORT], field[FOUND], field[masks_at(plan) + step]
    mask = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << plan.zone_order[rank]
    left = count
    for lane in range(count):
        masks[lane] = mask if short[lane] == 0.0 else masks[lane]
        found[lane] = 1.0 if short[lane] == 0.0 else found[lane]
        left -= int(found[lane])
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = plan.cpus[step] if cpus else plan.amounts[item]
        if need > 0 and plan.weights[place] != 0:
            add(plan, field, count, room_at(plan, rank, place), place, need)
        if step + 1 < plan.steps:
            free = field[room_at(plan, rank, place)]
            for lane in range(count):
                free[lane] -= need if short[lane] == 0.0 else 0
    return left


def add(plan: Plan, field: Field, count: int, at: int, place: int, need: int) -> None:
    """What one resource adds to the sums of `scoring`."""
    short, free, most = field[SHORT], field[at], field[at + 1]
    resources, first, second = field[COUNTED], field[FIRST], field[SECOND]
    if plan.strategy == BALANCED:
        for lane in range(count):
            if short[lane] == 0.0 and most[lane] > 0.0:
                used, square = counted(plan, place, int(free[lane] - need), int(most[lane]))
                resources[lane] += 1.0
                first[lane] += used
                second[lane] += square
        return
    asked, weight = float(need), float(plan.weights[place])
    # One sum more in this loop would double its time: weights alone tell whether a resource was counted.
    for lane in range(count):
        counts = weight if short[lane] == 0.0 and most[lane] > 0.0 else 0.0
        first[lane] += percent(free[lane] - asked, max(1.0, most[lane])) * counts
        second[lane] += counts


def sum_up(plan: Plan, field: Field, count: int) -> None:
    """The container's scores."""
    first, second, total, scored = field[FIRST], field[SECOND], field[TOTAL], field[SCORED]
    resources = field[COUNTED] if plan.strategy == BALANCED else second
    for lane in range(count):
        if resources[lane] > 0.0:
            total[lane] += combined(plan, 1, int(resources[lane]), int(first[lane]), int(second[lane]))
            scored[lane] += 1.0
