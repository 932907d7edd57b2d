"""The most common case for a single row in plain Python: twin of `direct` on the lists that NumPy makes of a row.

`scalar` and `evaluation` try it first: where machine code is not there, it is what a repeated shape costs. What depends
on the plan alone is kept with it; plans and rows that are scored in a less common way are left to the other rules."""

from __future__ import annotations

from typing import NamedTuple

from numalign.placement.kernels import survey
from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.scoring import summed_up
from numalign.placement.kernels.simple import ANYWHERE, stored
from numalign.placement.kernels.strategies import LEAST, MOST


class Place(NamedTuple):
    """A zone for a container."""

    zone: int
    mask: int
    """As the kubelet remembers it."""
    items: tuple[tuple[int, int, int], ...]
    """Of what it asks: where in the row, amount and weight."""


class Step(NamedTuple):
    """A container with the zones it may be in, best first; nothing: it asks for nothing that lies in zones."""

    places: tuple[Place, ...]
    pins_memory: bool
    anywhere: int
    """The mask of a container that lies nowhere."""


class Steps(NamedTuple):
    """A whole plan."""

    each: tuple[Step, ...]
    most_allocated: bool
    """Whether full zones are the better ones."""


def decide(steps: Steps, free: list[int], there: list[int], cells: list[int]) -> tuple[int, tuple[int, ...]] | None:
    """The row's score and the mask of every step; None: not for us. Amounts of the row lie zone by zone, and what is
    free is charged on the way."""
    total, count, masks = 0, 0, list[int]()
    for step in steps.each:
        if not step.places:
            masks.append(step.anywhere)
            continue
        place = _place(step, free, cells)
        if place is None:
            return None
        masks.append(place.mask)
        first = second = 0
        for at, need, weight in place.items:
            free[at] = left = free[at] - need
            most = there[at]
            if weight and most > 0:
                share = int(left * 100.0 / most)
                first += (share if share < 100 else 100) * weight
                second += weight
        if second:
            total += 100 - first // second if steps.most_allocated else first // second
            count += 1
    return summed_up(total, count), tuple(masks)


def _place(step: Step, free: list[int], cells: list[int]) -> Place | None:
    for place in step.places:
        if step.pins_memory and cells[place.zone] != 1 << place.zone:
            continue
        for at, need, _ in place.items:
            if free[at] < need:
                break
        else:
            return place
    return None


def steps(plan: Plan, width: int) -> Steps | None:
    """The plan for rows of so many columns; None: not for us."""
    found: tuple[int, Steps | None] | None = plan.__dict__.get("row")
    if found is None or found[0] != width:
        found = plan.__dict__["row"] = width, _steps(plan, width)
    return found[1]


def _steps(plan: Plan, width: int) -> Steps | None:
    if plan.strategy not in (LEAST, MOST) or plan.columns[-1] >= width or not survey.suits(plan):
        return None
    return Steps(tuple(_step(plan, step, width) for step in range(plan.steps)), plan.strategy == MOST)


def _step(plan: Plan, step: int, width: int) -> Step:
    first, end = plan.memory[step], plan.memory[step + 1]
    asked = [(0, plan.cpus[step]), *zip(plan.places_asked[first:end], plan.amounts[first:end], strict=True)]
    # What is named without an amount has room everywhere, and counts for nothing.
    items = [(plan.columns[place], need, plan.weights[place]) for place, need in asked if need]
    places = (
        Place(zone, stored(plan, zone), tuple((zone * width + at, need, weight) for at, need, weight in items))
        for zone in plan.zone_order
    )
    asks = plan.cpus[step] > 0 or first < end
    return Step(tuple(places) if asks else (), first < plan.devices[step], stored(plan, ANYWHERE))
