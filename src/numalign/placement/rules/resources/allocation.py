"""How full nodes would be with one pod more: what the two resource scores start from.

`read` takes the configured resources together with what the pod adds of each; `usages` gathers for some rows what
would be used and what there is. A resource that the node does not have, or that is counted by name and not asked for,
stays out of the score (kube-scheduler spec 1.9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from numalign.api.decode import quantity
from numalign.api.objects.pod import ResourceList
from numalign.api.schedulerconfig.ruleargs import ResourceSpec
from numalign.placement.rules.resources import totals
from numalign.placement.rules.resources.totals import Amounts, Totals
from numalign.placement.rules.rule import Rows, Scores


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
"""Twin of `Usage` for one row: before, after, offered, weight. Plain, because every decision makes some."""


def read(resources: Sequence[ResourceSpec], asked: ResourceList, world_totals: Totals) -> tuple[Addition, ...]:
    additions = []
    for spec in filter(lambda each: totals.is_counted(each.name), resources):
        amount = totals.counted(spec.name, asked.get(spec.name, quantity.ZERO))
        if amount or not totals.is_scalar(spec.name):
            additions.append(Addition(world_totals.column(spec.name), amount, spec.weight))
    return tuple(additions)


def usages(additions: Sequence[Addition], world_totals: Totals, rows: Rows, *, as_scored: bool) -> Iterator[Usage]:
    """`as_scored`: cpu and memory count with what silent containers are taken to need."""
    where = totals.selected(rows)
    for each in additions:
        before = _used(world_totals, each.column, as_scored)[each.column][where]
        offered = world_totals.allocatable[each.column][where]
        yield Usage(before=before, after=before + each.amount, offered=offered, weight=each.weight)


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


def _used(world_totals: Totals, column: int, as_scored: bool) -> Amounts:
    return world_totals.scored if as_scored and column in totals.SCORED else world_totals.requested
