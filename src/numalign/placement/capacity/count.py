"""Counts the pods of given shapes that each node still admits, as if they were placed there one after the other.

`count` answers for all shapes and rows in one call. Rows that read the same are counted once, kind by kind, by the
kernel; rows that numbers alone do not decide are counted by `walk`. The count is what the scheduler itself would place
on the node before it refuses. It is exact where the next pod certainly does not fit. It is a lower bound where the next
pod is not certain to be admitted, and an upper bound where the node has no report and zones may matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests
from numalign.placement.capacity.walk import RowWalks, Walk
from numalign.placement.columns.columns import UNREPORTED, VACANT, Columns
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.kernels.block import Amounts, Pending, Rows
from numalign.placement.kernels.plan import ZONES
from numalign.placement.reference.flavour import ReferenceFlavour

MOST_WALKED: Final = 4_000
"""Pods that one call places by the row model, which takes a thousand times as long as the kernel."""
KEYS: Final = (
    "stock",
    "kind",
    "free",
    "settled",
    "cells",
    "homeless",
    "offered",
    "spare",
    "loose",
    "pending_shape",
    "full_core_cpus",
    "split_known",
    "busy",
    "pods",
    "most_pods",
)
"""The columns that decide a count; rows with equal ones are counted once."""


class Bound(IntEnum):
    """How a count relates to the number of pods that the node admits."""

    EXACT = 0
    AT_LEAST = 1
    AT_MOST = 2


class ShapeCount(Struct, frozen=True, kw_only=True):
    """The answer for one shape; all arrays are by asked row."""

    shape: Shape
    rows: Rows
    counts: NDArray[np.int64]
    bounds: NDArray[np.int8]
    """`Bound`."""
    codes: NDArray[np.int8]
    """Why the next pod does not fit: a `decisions.Code`."""
    spread: Amounts
    """Pods by the position of the zone that they have everything in; the last number is of all others."""
    which: NDArray[np.intp]
    """Rows with equal numbers here read the same."""
    walks: Mapping[int, Walk]
    """By such a number, where the row model counted."""

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def bound(self) -> Bound | None:
        """Of the total; None: it is neither, as some rows count too few and others too many."""
        found = set(self.bounds.tolist()) - {Bound.EXACT}
        return None if len(found) > 1 else Bound(found.pop()) if found else Bound.EXACT


def count(
    engine: Engine, shapes: Sequence[Shape], rows: Rows | None = None, most_walked: int = MOST_WALKED
) -> list[ShapeCount]:
    """For each shape what these rows admit; all rows that have a node by default."""

    def exact(flavour: ExactFlavour) -> list[ShapeCount]:
        return Counter(engine, flavour, rows, most_walked).counted(shapes)

    def reference(_: ReferenceFlavour) -> list[ShapeCount]:
        why = "decides about single pods and cannot count; capacity needs the flavour exact"
        raise BadObject("KubeSchedulerConfiguration", "", "flavour reference", why)

    return engine.flavour.either(exact, reference)


class Counter:
    """Counts on the rows of one moment: valid until the next fact or decision."""

    def __init__(self, engine: Engine, flavour: ExactFlavour, rows: Rows | None, most_walked: int) -> None:
        flavour.refresh()
        self._flavour, self._columns = flavour, engine.columns
        self._trusted = engine.settings.trust_bind_order
        chosen = self._columns.every_row if rows is None else rows
        self.rows = chosen[self._columns.kind[chosen] != VACANT]
        self._walks = RowWalks(flavour, most_walked)
        self._alike, self._which = _alike(self._columns, self.rows, flavour.direct_states(self.rows))
        """One row of each kind of equal ones, and by asked row which of them it equals."""

    def counted(self, shapes: Sequence[Shape]) -> list[ShapeCount]:
        return [self._count(shape) for shape in shapes]

    def _count(self, shape: Shape) -> ShapeCount:
        table, rows, columns = self._flavour.verdicts.aside(shape), self._alike, self._columns
        codes, spread = np.full(len(rows), Code.VACANT, np.int8), np.zeros((len(rows), ZONES + 1), np.int64)
        kinds = columns.kind[rows]
        for kind in set(kinds.tolist()):
            mine = np.flatnonzero(kinds == kind)
            question = self._flavour.evaluation.counting(table, kind)
            pending = Pending(columns.settled, columns.pending_shape, shape.number, self._trusted)
            block = self._flavour.evaluation.block(kind)
            found = self._flavour.kernel.count(block, question, pending, rows[mine])
            if len(mine) == len(rows):
                codes, spread = found
            else:
                codes[mine], spread[mine] = found
        walks = {}
        for place in np.flatnonzero(codes == Code.NOT_DECIDED).tolist():
            walk = walks[place] = self._walks.walked(table, int(rows[place]))
            codes[place], spread[place] = walk.refusal.code, walk.spread
        counts = np.einsum("ij->i", spread)
        bounds = np.where((codes == Code.NOT_CERTAIN) | (codes == Code.NOT_DECIDED), Bound.AT_LEAST, Bound.EXACT)
        if may_be_aligned(shape):
            bounds[(kinds == UNREPORTED) & (counts > 0)] = Bound.AT_MOST
        which = self._which
        return ShapeCount(
            shape=shape,
            rows=self.rows,
            counts=counts[which],
            bounds=bounds.astype(np.int8)[which],
            codes=codes[which],
            spread=spread.take(which, axis=0),
            which=which,
            walks=walks,
        )


def zone_ids(engine: Engine, row: int) -> tuple[int, ...]:
    """The real ids of the row's zones by position; empty: the node has no report."""
    rules = engine.columns.rules(row)
    return rules.zones if rules is not None else ()


def may_be_aligned(shape: Shape) -> bool:
    """Whether some kubelet pins anything of such a pod."""
    return qos.may_be_aligned(shape.qos, requests.effective(shape.pod))


def _alike(columns: Columns, rows: Rows, direct: NDArray[np.int64]) -> tuple[Rows, NDArray[np.intp]]:
    """The first of all rows that read the same, and by row the place of the one that it equals. `direct`: equal for
    rows that are in the same state in direct mode."""
    if not len(rows):
        return rows, np.zeros(0, np.intp)
    numbers = [direct, *(_words(getattr(columns, name), rows) for name in KEYS)]
    lines = np.ascontiguousarray(np.concatenate([each for each in numbers if each.shape[1]], axis=1))
    line, data = lines.shape[1] * lines.itemsize, lines.tobytes()
    places: dict[bytes, int] = {}
    which = np.empty(len(rows), np.intp)
    for number in range(len(rows)):
        which[number] = places.setdefault(data[number * line : number * line + line], len(places))
    first = np.empty(len(places), np.intp)
    first[which[::-1]] = np.arange(len(rows) - 1, -1, -1)
    return rows[first], which


def _words(array: NDArray[np.generic], rows: Rows) -> NDArray[np.int64]:
    """The rows of an array as numbers side by side; columns that are zero everywhere are left out."""
    found = array[rows].reshape(len(rows), -1).astype(np.int64, copy=False)
    return found[:, found.any(axis=0)]
