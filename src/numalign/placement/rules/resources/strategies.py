"""The scoring strategies of NodeResourcesFit: LeastAllocated, MostAllocated and RequestedToCapacityRatio.

Each turns the usage of the configured resources, for many rows or one, into scores, with kube-scheduler's integer
divisions. `read` combines the configured resources with what the pod adds. A resource that the node does not have,
or that the pod does not request where that matters, is left out of the score (kube-scheduler spec 1.9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct

from numalign.api.schedulerconfig import pluginargs
from numalign.api.schedulerconfig.pluginargs import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from numalign.placement.rules import totals
from numalign.placement.rules.alike import SomeAmounts
from numalign.placement.rules.rule import MAX_SCORE, Scores
from numalign.placement.rules.totals import CountedAmounts, Totals


class Addition(Struct, frozen=True):
    """What the pod adds of one resource."""

    column: int
    amount: int
    weight: int


class Usage(Struct, frozen=True):
    """Of one resource, by row: used without the pod, used with it, and offered; offered is never 0 where it counts."""

    before: Scores
    after: Scores
    offered: Scores
    weight: int


RowUsage = tuple[int, int, int, int]
"""`Usage` of one row: before, after, offered, weight. A tuple, because every decision makes some."""


def read(resources: Sequence[ResourceSpec], asked: CountedAmounts, world_totals: Totals) -> tuple[Addition, ...]:
    additions = []
    for spec in resources:
        amount = asked.get(spec.name, 0)
        if amount or spec.name in totals.FIRST:
            additions.append(Addition(world_totals.column(spec.name), amount, spec.weight))
    return tuple(additions)


def usages(additions: Sequence[Addition], amounts: SomeAmounts, *, as_scored: bool) -> Iterator[Usage]:
    """`as_scored`: cpu and memory count with what silent containers are taken to need."""
    for each in additions:
        column = each.column
        before = amounts.scored(column) if as_scored and column in totals.SCORED else amounts.requested(column)
        yield Usage(before, before + each.amount, amounts.offered(column), each.weight)


def usages_of(additions: Sequence[Addition], world_totals: Totals, row: int, *, as_scored: bool) -> list[RowUsage]:
    """The same for one row, without what it does not offer."""
    found: list[RowUsage] = []
    allocatable, requested, scored = world_totals.allocatable, world_totals.requested, world_totals.scored
    for each in additions:
        column = each.column
        offered = allocatable.item(column, row)
        if offered:
            used = scored if as_scored and column in totals.SCORED else requested
            before = used.item(column, row)
            found.append((before, before + each.amount, offered, each.weight))
    return found


FULL = 100
SHAPE_SCALE = 10
"""Shapes are drawn from 0 to 10."""


class AllocationScore(Protocol):
    def rows(self, usages: Iterable[Usage], count: int) -> Scores:
        """Scores of that many rows."""

    def row(self, usages: Iterable[RowUsage]) -> int:
        """The score of one row, by what it offers."""


def of(strategy: ScoringStrategy) -> AllocationScore:
    match strategy.type:
        case pluginargs.MOST_ALLOCATED:
            return MostAllocated()
        case pluginargs.REQUESTED_TO_CAPACITY_RATIO:
            return RequestedToCapacityRatio(strategy.requested_to_capacity_ratio.shape)
    return LeastAllocated()


class LeastAllocated:
    """LeastAllocated."""

    def rows(self, usages: Iterable[Usage], count: int) -> Scores:
        return _means(((_percent(np.maximum(each.offered - each.after, 0), each), each) for each in usages), count)

    def row(self, usages: Iterable[RowUsage]) -> int:
        total = weights = 0
        for _, after, offered, weight in usages:
            if after < offered:
                total += (offered - after) * MAX_SCORE // offered * weight
            weights += weight
        return total // weights if weights else 0


class MostAllocated:
    """MostAllocated."""

    def rows(self, usages: Iterable[Usage], count: int) -> Scores:
        return _means(((_percent(np.minimum(each.after, each.offered), each), each) for each in usages), count)

    def row(self, usages: Iterable[RowUsage]) -> int:
        total = weights = 0
        for _, after, offered, weight in usages:
            total += min(after, offered) * MAX_SCORE // offered * weight
            weights += weight
        return total // weights if weights else 0


class RequestedToCapacityRatio:
    """RequestedToCapacityRatio; resources that score nothing do not weigh either."""

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        self._line = line(shape)

    def rows(self, usages: Iterable[Usage], count: int) -> Scores:
        total, weights = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for usage in usages:
            # Beyond full, the end of the line.
            utilization = np.where(usage.after > usage.offered, FULL, _percent(usage.after, usage))
            score = np.where(usage.offered != 0, self._line[np.clip(utilization, 0, FULL)], 0)
            total += score * usage.weight
            weights += np.where(score > 0, usage.weight, 0)
        return np.where(weights > 0, _rounded(total, np.maximum(weights, 1)), 0)

    def row(self, usages: Iterable[RowUsage]) -> int:
        total = weights = 0
        for _, after, offered, weight in usages:
            utilization = FULL if after > offered else after * FULL // offered
            score = self._line.item(max(utilization, 0))
            total, weights = total + score * weight, weights + (weight if score > 0 else 0)
        return _rounded(total, weights) if weights else 0


def line(shape: Sequence[UtilizationShapePoint]) -> Scores:
    """The score at every utilization from 0 to 100."""
    return np.array([_at(utilization, shape) for utilization in range(FULL + 1)], np.int64)


def _at(utilization: int, shape: Sequence[UtilizationShapePoint]) -> int:
    right = next((place for place, point in enumerate(shape) if utilization <= point.utilization), None)
    if right is None or right == 0:
        return shape[-1 if right is None else 0].score * SHAPE_SCALE
    before, after = shape[right - 1], shape[right]
    rise = (after.score - before.score) * SHAPE_SCALE * (utilization - before.utilization)
    run = after.utilization - before.utilization
    # Go divides toward zero.
    return before.score * SHAPE_SCALE + (abs(rise) // run if rise >= 0 else -(abs(rise) // run))


def _means(scored: Iterable[tuple[Scores, Usage]], count: int) -> Scores:
    total, weights = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for score, usage in scored:
        # Weights are positive, and 0 where the node does not have the resource: multiplied, it takes no branch.
        weight = (usage.offered != 0) * np.int64(usage.weight)
        total += score * weight
        weights += weight
    return total // np.maximum(weights, 1)


def _percent(part: Scores, usage: Usage) -> Scores:
    return part * FULL // np.maximum(usage.offered, 1)


Whole = TypeVar("Whole", int, Scores)


def _rounded(total: Whole, weights: Whole) -> Whole:
    """Divided and rounded to the nearest, halves up."""
    return (2 * total + weights) // (2 * weights)
