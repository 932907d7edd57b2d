"""Reads what NodeResourcesFit and NodeResourcesBalancedAllocation score: resources, strategy, and what the pod adds.

`read` combines the configured resources with what the pod adds, `of` reads which of the strategies LeastAllocated,
MostAllocated and RequestedToCapacityRatio counts; `nodeamounts` evaluates them. A resource that the pod does not
request where that matters is left out of the score (kube-scheduler spec 1.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from numalign.api.schedulerconfig import pluginargs
from numalign.api.schedulerconfig.pluginargs import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from numalign.placement.rules import nodeamounts, totals
from numalign.placement.rules.nodeamounts import Asked
from numalign.placement.rules.totals import CountedAmounts, Totals

FULL: Final = 100
SHAPE_SCALE: Final = 10
"""Shapes are drawn from 0 to 10."""
STRATEGIES: Final = {
    pluginargs.MOST_ALLOCATED: nodeamounts.MOST,
    pluginargs.REQUESTED_TO_CAPACITY_RATIO: nodeamounts.RATIO,
}


def read(
    resources: Sequence[ResourceSpec], asked: CountedAmounts, world_totals: Totals, *, as_scored: bool
) -> tuple[Asked, ...]:
    """`as_scored`: cpu and memory count with what silent containers are taken to need."""
    added = []
    for spec in resources:
        amount = asked.get(spec.name, 0)
        if amount or spec.name in totals.FIRST:
            column = world_totals.column(spec.name)
            added.append(Asked(column, amount, spec.weight, as_scored and column in totals.SCORED))
    return tuple(added)


def of(strategy: ScoringStrategy) -> tuple[int, tuple[int, ...]]:
    """What is to be evaluated, and along which line."""
    what = STRATEGIES.get(strategy.type, nodeamounts.LEAST)
    return what, line(strategy.requested_to_capacity_ratio.shape) if what == nodeamounts.RATIO else nodeamounts.NO_LINE


def line(shape: Sequence[UtilizationShapePoint]) -> tuple[int, ...]:
    """The score at every utilization from 0 to 100."""
    return tuple([_at(utilization, shape) for utilization in range(FULL + 1)])


def _at(utilization: int, shape: Sequence[UtilizationShapePoint]) -> int:
    right = next((place for place, point in enumerate(shape) if utilization <= point.utilization), None)
    if right is None or right == 0:
        return shape[-1 if right is None else 0].score * SHAPE_SCALE
    before, after = shape[right - 1], shape[right]
    rise = (after.score - before.score) * SHAPE_SCALE * (utilization - before.utilization)
    run = after.utilization - before.utilization
    # Go divides toward zero.
    return before.score * SHAPE_SCALE + (abs(rise) // run if rise >= 0 else -(abs(rise) // run))
