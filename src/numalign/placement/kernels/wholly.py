"""The most common case of all rows: the whole pod in one zone, found in the lanes of all rows.

`surveying` asks here first, 256 neighbours at a time. A zone that has room for all containers together gets them all,
each in its turn; one that has less than any of them asks for gets none. So nothing has to be charged from container to
container, and scores are all that is left to do for each of them. Rows where a zone may get some of the containers are
`TORN`: `abreast` looks at these, whose language and lanes these are."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import ABREAST
from numalign.placement.kernels.lanes import (
    FIRST,
    FOUND,
    LOST,
    ROOM,
    SHORT,
    STRIDE,
    TOTAL,
    Zoned,
    asks_nothing,
    clear,
    give_up,
    mask_at,
)
from numalign.placement.kernels.plan import MOST_PLACES, Plan
from numalign.placement.kernels.strategies import FEWEST_ZONES, MOST

TORN: Final = -12
"""Instead of a code: containers may lie in several zones."""
WHERE: Final = ROOM
"""Where the lane of masks begins."""
SCRATCH: Final = WHERE + STRIDE
"""Where the lanes of all rows begin."""
SUM, LEAST, TAKEN = range(3)
"""By place: what all containers ask for, the least that each of them does, and what those so far have taken."""


class Layout(NamedTuple):
    """How the lanes of all rows follow each other: free amounts by zone and column, all there is, what nodes have to
    spare by column, which zones are odd."""

    zones: int
    width: int
    rows: int


def room_for_asks() -> Any:
    return np.empty((3, MOST_PLACES))


def sum_asks(plan: Plan, asked: Any) -> int:
    """Fill in what all containers ask for; the first that asks for anything."""
    first, asking = plan.steps, 0
    for place in range(plan.places):
        asked[SUM, place], asked[LEAST, place], asked[TAKEN, place] = 0.0, np.inf, 0.0
    for step in range(plan.steps):
        if asks_nothing(plan, step):
            continue
        first, asking = min(first, step), asking + 1
        for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
            cpus = item < plan.memory[step]
            place, need = 0 if cpus else plan.places_asked[item], float(plan.cpus[step] if cpus else plan.amounts[item])
            asked[SUM, place] += need
            asked[LEAST, place] = min(asked[LEAST, place], need)
            asked[TAKEN, place] += 1.0
    for place in range(plan.places):
        # Who does not name it does without.
        asked[LEAST, place] = asked[LEAST, place] if asked[TAKEN, place] == asking else 0.0
    return int(first)


def decide_wholly(
    plan: Plan, asked: Any, first: int, field: Any, layout: Layout, start: int, rows: Any, zoned: Zoned, codes: Any
) -> None:
    """Codes or scores of these neighbours from `start` on, and one mask each in `WHERE`; those with a code in `LOST`
    keep it. `first`: the first container that asks for anything."""
    scored, left = 0, begin_rows(field)
    for rank in range(plan.zones if first < plan.steps else 0):
        if left == 0:
            break
        look_for_all(plan, asked, field, layout, rank, start)
        settled = settle_all(field, mask_at(plan, rank))
        if settled > 0:
            scored = score_all(plan, asked, field, layout, rank, start)
        left -= settled
        if left > 0:
            left = tear(plan, asked, field, layout, rank, start)
    if left > 0 and first < plan.steps:
        give_up(plan, field, first, rows, len(rows), zoned)
    conclude_rows(field, float(scored), codes)


def begin_rows(field: Any) -> int:
    """How many are not out already."""
    left = 0
    for lane in range(np.uint64(ABREAST)):
        lost = field[np.uint64(LOST) + lane] < 0.0
        field[np.uint64(FOUND) + lane] = 1.0 if lost else 0.0
        left += int(not lost)
    clear(field, TOTAL, ABREAST)
    clear(field, WHERE, ABREAST)
    return left


def at_lane(plan: Plan, layout: Layout, rank: int, place: int) -> int:
    """What is free."""
    return SCRATCH + (plan.zone_order[rank] * layout.width + plan.columns[place]) * layout.rows


def at_spare(layout: Layout, column: int) -> int:
    return SCRATCH + (2 * layout.zones * layout.width + column) * layout.rows


def at_odd(plan: Plan, layout: Layout, rank: int) -> int:
    return at_spare(layout, layout.width + plan.zone_order[rank])


def look_for_all(plan: Plan, asked: Any, field: Any, layout: Layout, rank: int, start: int) -> None:
    """Which rows lack room for the whole pod in this zone, or need none."""
    odd = np.uint64(at_odd(plan, layout, rank) + start)
    for lane in range(np.uint64(ABREAST)):
        field[np.uint64(SHORT) + lane] = max(field[np.uint64(FOUND) + lane], field[odd + lane])
    for place in range(plan.places):
        need, free = asked[SUM, place], np.uint64(at_lane(plan, layout, rank, place) + start)
        for lane in range(np.uint64(ABREAST)):
            short = 1.0 if field[free + lane] < need else 0.0
            field[np.uint64(SHORT) + lane] = max(field[np.uint64(SHORT) + lane], short)


def settle_all(field: Any, mask: int) -> int:
    """Rows with room take the zone; how many."""
    settled, where = 0, float(mask)
    for lane in range(np.uint64(ABREAST)):
        room = field[np.uint64(SHORT) + lane] == 0.0
        settled += int(room)
        field[np.uint64(FOUND) + lane] = 1.0 if room else field[np.uint64(FOUND) + lane]
        field[np.uint64(WHERE) + lane] = where if room else field[np.uint64(WHERE) + lane]
    return settled


def score_all(plan: Plan, asked: Any, field: Any, layout: Layout, rank: int, start: int) -> int:
    """Add the scores of rows that have just been settled; how many containers count."""
    scored, to_there = 0, np.uint64(layout.zones * layout.width * layout.rows)
    for place in range(plan.places):
        asked[TAKEN, place] = 0.0
    for step in range(plan.steps):
        weights = 0.0
        clear(field, FIRST, ABREAST)
        for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
            cpus = item < plan.memory[step]
            place, need = 0 if cpus else plan.places_asked[item], float(plan.cpus[step] if cpus else plan.amounts[item])
            weight = float(plan.weights[place]) if need > 0.0 else 0.0
            asked[TAKEN, place] += need
            if weight > 0.0:
                free = np.uint64(at_lane(plan, layout, rank, place) + start)
                add_whole_share(field, weight, free, free + to_there, asked[TAKEN, place])
            weights += weight
        if weights > 0.0:
            add_mean(plan, field, weights)
            scored += 1
    return scored


def add_whole_share(field: Any, weight: float, free: Any, there: Any, taken: float) -> None:
    """Twin of `scoring.counted`; what a row with room in the zone has free there, it has."""
    for lane in range(np.uint64(ABREAST)):
        share = np.floor((field[free + lane] - taken) * 100.0 / max(1.0, field[there + lane]))
        field[np.uint64(FIRST) + lane] += min(share, 100.0) * weight


def add_mean(plan: Plan, field: Any, weights: float) -> None:
    """Twin of `scoring.combined`."""
    sign, base = (-1.0, 100.0) if plan.strategy == MOST else (1.0, 0.0)
    fixed = plan.strategy == FEWEST_ZONES
    for lane in range(np.uint64(ABREAST)):
        mean = np.floor(field[np.uint64(FIRST) + lane] / weights)
        score = base + sign * (100.0 if fixed else mean)
        field[np.uint64(TOTAL) + lane] += score if field[np.uint64(SHORT) + lane] == 0.0 else 0.0


def tear(plan: Plan, asked: Any, field: Any, layout: Layout, rank: int, start: int) -> int:
    """Rows without a zone that may get some of the containers in this one are out; how many are left."""
    left, odd = 0, np.uint64(at_odd(plan, layout, rank) + start)
    clear(field, SHORT, ABREAST)
    for place in range(plan.places):
        need, free = asked[LEAST, place], np.uint64(at_lane(plan, layout, rank, place) + start)
        for lane in range(np.uint64(ABREAST)):
            short = 1.0 if field[free + lane] < need else 0.0
            field[np.uint64(SHORT) + lane] = max(field[np.uint64(SHORT) + lane], short)
    for lane in range(np.uint64(ABREAST)):
        found, short = field[np.uint64(FOUND) + lane], field[np.uint64(SHORT) + lane]
        torn = found == 0.0 and (short == 0.0 or field[odd + lane] > 0.0)
        field[np.uint64(LOST) + lane] = float(TORN) if torn else field[np.uint64(LOST) + lane]
        field[np.uint64(FOUND) + lane] = 1.0 if torn else found
        left += int(found == 0.0 and not torn)
    return left


def conclude_rows(field: Any, scored: float, codes: Any) -> None:
    """Twin of `scoring.summed_up`; rows that are out have no masks."""
    for lane in range(np.uint64(ABREAST)):
        lost, mean = field[np.uint64(LOST) + lane], np.floor(field[np.uint64(TOTAL) + lane] / max(1.0, scored))
        score = max(1.0, min(100.0, mean)) if scored > 0.0 else 100.0
        codes[lane] = np.int32(lost if lost < 0.0 else score)
        field[np.uint64(WHERE) + lane] = 0.0 if lost < 0.0 else field[np.uint64(WHERE) + lane]
