"""The most common case for a few hundred rows: twin of `directarrays`, which calls it.

All zones and resources of the rows lie in one array, so that few steps of NumPy do: with so few rows each step costs
more than what it computes. Mostly one zone has room for all of them, and no other is read. What depends on the plan
alone is kept with it. Plans and rows that are scored in a less common way are left to `directarrays`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from numalign.placement.kernels.block import Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import SINGLE, Plan
from numalign.placement.kernels.simple import ANYWHERE, GENERAL, stored
from numalign.placement.kernels.strategies import LEAST, MOST
from numalign.placement.kernels.tables import Numbers, Truths

FEW: Final = 400
"""Rows up to which it is faster."""


class Step(NamedTuple):
    """What a container asks, by place; where it counts for the score, and how much."""

    need: Numbers
    asks: bool
    pins_memory: bool
    counting: Numbers | slice
    """Mostly all of it."""
    weights: Numbers
    weight: int
    """Of all together."""


class Constants(NamedTuple):
    steps: tuple[Step, ...]
    order: Numbers
    in_order: bool
    """Whether zones come by their numbers."""
    bits: Any
    stored: Any
    """The mask of each zone, and as the kubelet remembers it."""
    columns: Numbers | slice
    """Mostly the first ones there are, which need no copy."""
    pins_memory: bool
    """Whether any step does."""
    in_best_zone: Any
    """The masks of a row of which every container goes into the best zone."""


def decide(block: RowBlock, rows: Rows, plan: Plan) -> Outcomes | None:
    """Twin of `directarrays.Lookout`; None: not for us."""
    if plan.strategy not in (LEAST, MOST):
        return None
    known = _constants(plan)
    return _in_best_zone(block, rows, plan, known) or _in_any_zone(block, rows, plan, known)


def _in_best_zone(block: RowBlock, rows: Rows, plan: Plan, known: Constants) -> Outcomes | None:
    """Where the zone that comes first has room for every container on every row; None: it has not."""
    zone = plan.zone_order[0]
    left, there = block.free[rows, zone][:, known.columns], block.allocatable[rows, zone][:, known.columns]
    if there.min(initial=1) <= 0 or (known.pins_memory and (block.cells[rows, zone] != known.bits[zone]).any()):
        return None
    total, count = np.zeros(len(rows), np.int64), 0
    for step in known.steps:
        left = left - step.need
        if left.min(initial=0) < 0:
            return None
        if step.weight:
            total += _scores(plan, step, left, there)
            count += 1
    masks = np.empty((len(rows), plan.steps), np.uint8)
    masks[:] = known.in_best_zone
    return Outcomes(_means(total, count), masks)


def _in_any_zone(block: RowBlock, rows: Rows, plan: Plan, known: Constants) -> Outcomes | None:
    each, zones = np.arange(len(rows)), plan.zones
    free = np.maximum(block.free.take(rows, axis=0)[:, :zones, known.columns], 0)
    allocatable = block.allocatable.take(rows, axis=0)[:, :zones, known.columns]
    if allocatable.min(initial=1) <= 0:
        return None
    apart = block.cells.take(rows, axis=0)[:, :zones] == known.bits
    masks, found = np.zeros((len(rows), plan.steps), np.uint8), np.ones(len(rows), np.bool_)
    total, count = np.zeros(len(rows), np.int64), 0
    for number, step in enumerate(known.steps):
        if not step.asks:
            masks[:, number] = 0 if plan.policy == SINGLE else plan.every
            continue
        fits: Truths = np.asarray((free >= step.need).all(axis=2))
        if step.pins_memory:
            fits &= apart
        first = fits.argmax(axis=1) if known.in_order else known.order[fits[:, known.order].argmax(axis=1)]
        found &= fits[each, first]
        masks[:, number] = known.stored[first]
        left = free[each, first] - step.need
        if step.weight:
            total += _scores(plan, step, left, allocatable[each, first])
            count += 1
        if number + 1 < plan.steps:
            free[each, first] = left
    masks[~found] = 0
    return Outcomes(np.where(found, _means(total, count), GENERAL), masks)


def _means(total: Numbers, count: int) -> Numbers:
    """Twin of `scoring.summed_up`."""
    return np.minimum(np.maximum(total // count, 1), 100) if count else np.full(len(total), 100)


def _scores(plan: Plan, step: Step, left: Numbers, there: Numbers) -> Numbers:
    """Twin of `scoring`, where there is some of everything; rows that have no room are anybody's guess."""
    shares = np.minimum(left[:, step.counting] * 100.0 / there[:, step.counting], 100.0).astype(np.int64)
    share: Numbers = shares.dot(step.weights) // step.weight
    return share if plan.strategy == LEAST else 100 - share


def _constants(plan: Plan) -> Constants:
    found: Constants | None = plan.__dict__.get("stacked")
    if found is None:
        steps = tuple(_step(plan, step) for step in range(plan.steps))
        bits = np.array([1 << zone for zone in range(plan.zones)], np.uint8)
        best = plan.zone_order[0]
        found = plan.__dict__["stacked"] = Constants(
            steps=steps,
            order=np.array(plan.zone_order),
            in_order=plan.zone_order == sorted(plan.zone_order),
            bits=bits,
            stored=bits * 0 if plan.policy == SINGLE and plan.zones == 1 else bits,
            columns=slice(plan.places) if plan.columns == [*range(plan.places)] else np.array(plan.columns),
            pins_memory=any(step.pins_memory for step in steps),
            in_best_zone=np.array([stored(plan, best if step.asks else ANYWHERE) for step in steps], np.uint8),
        )
    return found


def _step(plan: Plan, step: int) -> Step:
    need = np.zeros(plan.places, np.int64)
    need[0] = plan.cpus[step]
    for item in range(plan.memory[step], plan.memory[step + 1]):
        need[plan.places_asked[item]] = plan.amounts[item]
    weights = np.array(plan.weights, np.int64)
    counting = np.flatnonzero((need > 0) & (weights > 0))
    asks = plan.cpus[step] > 0 or plan.memory[step] < plan.memory[step + 1]
    every = counting if len(counting) < plan.places else slice(None)
    own = weights[counting]
    return Step(need, asks, plan.memory[step] < plan.devices[step], every, own, int(own.sum()))
