"""The most common case for a single row in plain Python: twin of `direct` on the lists that NumPy makes of a row.

`scalar` tries it first: where machine code is not there, it is what a repeated shape costs. What depends on the plan
alone is kept with it; plans and rows that are scored in a less common way are left to the other rules."""

from __future__ import annotations

from typing import NamedTuple

from numalign.placement.kernels import surveying
from numalign.placement.kernels.block import RowBlock
from numalign.placement.kernels.plans import Plan
from numalign.placement.kernels.scoring import summed_up
from numalign.placement.kernels.simple import ANYWHERE, stored
from numalign.placement.kernels.strategies import LEAST, MOST

Amounts = list[list[int]]
"""By zone and column."""


class Step(NamedTuple):
    """What a container asks: column, amount and weight."""

    items: tuple[tuple[int, int, int], ...]
    asks: bool
    pins_memory: bool


def decide(block: RowBlock, row: int, plan: Plan) -> tuple[int, tuple[int, ...]] | None:
    """The row's score and the mask of every step; None: not for us."""
    steps = _steps(plan, block.free.shape[2])
    if steps is None:
        return None
    free, there, cells = block.free[row].tolist(), block.allocatable[row].tolist(), block.cells[row].tolist()
    scores, masks = list[int](), list[int]()
    for step in steps:
        zone = _zone(plan, step, free, cells) if step.asks else ANYWHERE
        if zone is None:
            return None
        masks.append(stored(plan, zone))
        if zone == ANYWHERE:
            continue
        first, second = _taken(step, free[zone], there[zone])
        if second:
            scores.append(first // second if plan.strategy == LEAST else 100 - first // second)
    return summed_up(sum(scores), len(scores)), tuple(masks)


def _zone(plan: Plan, step: Step, free: Amounts, cells: list[int]) -> int | None:
    for zone in plan.zone_order:
        mine = free[zone]
        if step.pins_memory and cells[zone] != 1 << zone:
            continue
        for column, need, _ in step.items:
            if mine[column] < need:
                break
        else:
            return zone
    return None


def _taken(step: Step, free: list[int], there: list[int]) -> tuple[int, int]:
    """Charge the zone; the sums that `scoring.combined` takes."""
    first = second = 0
    for column, need, weight in step.items:
        free[column] = left = free[column] - need
        most = there[column]
        if weight and most > 0:
            first += min(int(float(left) * 100.0 / float(most)), 100) * weight
            second += weight
    return first, second


def _steps(plan: Plan, width: int) -> tuple[Step, ...] | None:
    if "row" not in plan.__dict__:
        suited = plan.strategy in (LEAST, MOST) and surveying.suits(plan)
        plan.__dict__["row"] = tuple(_step(plan, step) for step in range(plan.steps)) if suited else None
    found: tuple[Step, ...] | None = plan.__dict__["row"]
    return found if plan.columns[-1] < width else None


def _step(plan: Plan, step: int) -> Step:
    first, end = plan.memory[step], plan.memory[step + 1]
    asked = [(0, plan.cpus[step]), *zip(plan.places_asked[first:end], plan.amounts[first:end], strict=True)]
    # What is named without an amount has room everywhere, and counts for nothing.
    items = tuple((plan.columns[place], need, plan.weights[place]) for place, need in asked if need)
    return Step(items, plan.cpus[step] > 0 or first < end, first < plan.devices[step])
