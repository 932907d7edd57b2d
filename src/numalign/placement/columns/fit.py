"""Whether a node as a whole has room: the stock scheduler's NodeResourcesFit, over many rows at once.

`verdicts` asks before any zone is looked at. Requests are held against node allocatable less the requests of all pods
on the node; a resource that a pod does not ask for never refuses it (kube-scheduler spec, NodeResourcesFit)."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.columns.changelog import Rows
from numalign.placement.columns.columns import LARGEST, Columns
from numalign.placement.columns.shapes import Shape


class Totals(Struct, frozen=True, dict=True):
    """What a shape asks of a node as a whole, by column; amounts of zero are left out."""

    columns: tuple[int, ...]
    amounts: tuple[int, ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.columns, self.amounts, strict=True))


def totals(shape: Shape, columns: Columns) -> Totals:
    """Worked out once for a shape: columns keep their numbers."""
    known: dict[int, tuple[Columns, Totals]] = shape.__dict__.setdefault("_totals", {})
    found = known.get(id(columns))
    if found is None or found[0] is not columns:
        found = known[id(columns)] = columns, _totals(shape, columns)
    return found[1]


def _totals(shape: Shape, columns: Columns) -> Totals:
    # One more than the largest amount of any node, so that cutting never makes a pod fit.
    asked = {columns.column(name): min(amount, LARGEST + 1) for name, amount in shape.totals.items() if amount > 0}
    return Totals(tuple(asked), tuple(asked.values()))


def fits(columns: Columns, rows: Rows, totals: Totals) -> NDArray[np.bool_]:
    """Which of the rows have room."""
    where = slice(len(rows)) if rows is columns.every_row else rows
    room: NDArray[np.bool_] = columns.pods[where] < columns.most_pods[where]
    for column, amount in totals.pairs:
        room &= columns.requested[where, column] + amount <= columns.offered[where, column]
    return room


def fits_row(columns: Columns, row: int, totals: Totals) -> bool:
    """The same for one row, without the price of arrays."""
    flat = columns.flat
    if flat.pods[row] >= flat.most_pods[row]:
        return False
    requested, offered, first = flat.requested, flat.offered, row * flat.width
    for column, amount in totals.pairs:  # noqa: SIM110 (a generator takes longer)
        if requested[first + column] + amount > offered[first + column]:
            return False
    return True


def charge(columns: Columns, row: int, totals: Totals) -> bool:
    """Count a pod that has room there, so that no number gets too large; whether there is room for another one."""
    flat = columns.flat
    flat.pods[row] = pods = flat.pods[row] + 1
    room = pods < flat.most_pods[row]
    requested, offered, first = flat.requested, flat.offered, row * flat.width
    for column, amount in totals.pairs:
        requested[first + column] = taken = requested[first + column] + amount
        if taken + amount > offered[first + column]:
            room = False
    columns.log.append(row)
    return room
