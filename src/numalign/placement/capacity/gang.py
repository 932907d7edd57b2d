"""Finds room for a list of pods as a whole: all of them or none.

The scheduler calls `fitting` for requests that ask for all or nothing. Equal pods fit if the counts of all nodes add
up to enough. For pods of several shapes a first-fit search fills one node after the other, the scarcest shape first,
on copies of the rows; what it finds is certain. Where it finds nothing, only a count that is too small proves that
there is no room: the search does not try everything."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from enum import StrEnum
from typing import Final

import numpy as np
from msgspec import Struct, field

from numalign.placement.capacity import count
from numalign.placement.capacity.count import Bound, ShapeCount
from numalign.placement.capacity.walk import RowRefusal, RowTrial
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.kernels.block import Rows
from numalign.placement.verdicts.verdicts import VerdictTable

MOST_TRIED: Final = 2_000
"""Pods that one search places on rows that have pods of the list already."""


class Room(StrEnum):
    """Whether all pods of a list find room together."""

    FITS = "fits"
    DOES_NOT_FIT = "does-not-fit"
    NOT_FOUND = "not-found"
    """No room was found, and nothing proves that there is none."""


class GangFit(Struct, frozen=True, kw_only=True):
    room: Room
    placed: dict[int, dict[int, int]] = field(default_factory=dict)
    """By row and place in the list of shapes: pods. Empty unless all fit."""
    missing: tuple[int, ...] = ()
    """By place in the list of shapes: pods that found no room."""


def fitting(
    engine: Engine, wanted: Sequence[tuple[Shape, int]], rows: Sequence[Rows | None]
) -> Generator[None, None, GangFit | None]:
    """Searches in steps of about a millisecond, between which the cluster may change. A row that changes is used no
    more; None: one that had been used already has changed. `wanted`: shapes, and how many pods of each; `rows`: where
    each may be."""
    since, counted = _generation(engine), list[ShapeCount]()
    for (shape, _), own in zip(wanted, rows, strict=True):
        counted.append(count.count(engine, [shape], own)[0])
        yield
    numbers = [number for _, number in wanted]
    short = tuple(max(0, number - each.total) for number, each in zip(numbers, counted, strict=True))
    if any(short):
        proven = any(
            lacking and each.bound in (Bound.EXACT, Bound.AT_MOST) for lacking, each in zip(short, counted, strict=True)
        )
        return GangFit(room=Room.DOES_NOT_FIT if proven else Room.NOT_FOUND, missing=short)
    best: GangFit | None = None
    for order in _orders(numbers, counted):
        found = yield from _GangSearch(engine, counted, numbers, since).filled(order)
        if found is None or found.room is Room.FITS:
            return found
        best = found if best is None or sum(found.missing) < sum(best.missing) else best
    assert best is not None, "there is at least one order"
    return best


def _generation(engine: Engine) -> int:
    engine.flavour.refresh()
    return engine.changes.generation


def _not_exact(_: object) -> ExactFlavour:
    raise AssertionError("counting has refused the flavour")


def _orders(numbers: Sequence[int], counted: Sequence[ShapeCount]) -> list[list[int]]:
    """The scarcest shape first, then the other way round."""
    scarce = sorted(range(len(numbers)), key=lambda place: (counted[place].total / max(1, numbers[place]), place))
    return [scarce] if len(scarce) == 1 else [scarce, scarce[::-1]]


class _GangSearch:
    def __init__(self, engine: Engine, counted: Sequence[ShapeCount], numbers: Sequence[int], since: int) -> None:
        """`since`: the generation of the rows when they were counted."""
        self._flavour, self._counted = engine.flavour.either(lambda exact: exact, _not_exact), counted
        self._engine, self._since = engine, since
        self._left = list(numbers)
        self._placed: dict[int, dict[int, int]] = {}
        self._trials: dict[int, RowTrial] = {}
        self._patience = MOST_TRIED
        self._changed = self._look()

    def filled(self, order: Sequence[int]) -> Generator[None, None, GangFit | None]:
        roomy = [each.rows[each.counts > 0] for each in self._counted]
        later = np.zeros(max((int(rows.max()) + 1 for rows in roomy if len(rows)), default=0), np.int32)
        """By row, how many of the shapes still to come have room there."""
        for rows in roomy:
            later[rows] += 1
        for place in order:
            later[roomy[place]] -= 1
            self._on_fresh_rows(place, later)
            yield
            self._changed = self._look()
            yield from self._on_used_rows(place)
        if self._changed is None or not self._changed.isdisjoint(self._placed):
            return None
        if any(self._left):
            return GangFit(room=Room.NOT_FOUND, missing=tuple(self._left))
        return GangFit(room=Room.FITS, placed=self._placed)

    def _look(self) -> set[int] | None:
        """The rows that have changed; None: too many to tell."""
        if _generation(self._engine) == self._since:
            return set()
        found = self._engine.changes.since(self._since)
        return None if found is None else set(found.tolist())

    def _is_same(self, row: int) -> bool:
        return self._changed is not None and row not in self._changed

    def _on_fresh_rows(self, place: int, later: Rows) -> None:
        """Rows that shapes still to come can do without come first, and of these the roomiest: they stay whole."""
        own = self._counted[place]
        has_room = own.counts > 0
        rows, counts = own.rows[has_room], own.counts[has_room]
        for at in np.lexsort((rows, -counts, later[rows] > 0)).tolist():
            if not self._left[place]:
                return
            row = int(rows[at])
            if row not in self._placed and self._is_same(row):
                taken = min(int(counts[at]), self._left[place])
                self._placed[row] = {place: taken}
                self._left[place] -= taken

    def _on_used_rows(self, place: int) -> Iterator[None]:
        allowed = set(self._counted[place].rows.tolist())
        for row in [row for row in self._placed if row in allowed]:
            if not self._left[place] or self._patience <= 0:
                return
            if place in self._placed[row] and len(self._placed[row]) == 1:
                continue  # it is full, or the last pod is on it
            while self._left[place] and self._patience > 0 and self._is_same(row):
                if not (yield from self._one_more(row, place)):
                    break
                self._placed[row][place] = self._placed[row].get(place, 0) + 1
                self._left[place] -= 1

    def _one_more(self, row: int, place: int) -> Generator[None, None, bool]:
        """Whether the row is certain to admit one more pod of the shape beside those that are on it."""
        trial = yield from self._trial(row)
        if trial is None or not self._is_same(row):
            return False
        self._patience -= 1
        admitted = not isinstance(trial.place(self._table(place)), RowRefusal)
        yield
        self._changed = self._look()
        return admitted

    def _trial(self, row: int) -> Generator[None, None, RowTrial | None]:
        """The row with the pods that are on it; None: they are not certain to be admitted together."""
        if row not in self._trials:
            made = RowTrial(self._flavour, row)
            for place, pods in self._placed[row].items():
                for _ in range(pods):
                    self._patience -= 1
                    if self._patience < 0 or isinstance(made.place(self._table(place)), RowRefusal):
                        return None
                    yield
                    self._changed = self._look()
                    if not self._is_same(row):
                        return None
            self._trials[row] = made
        return self._trials[row]

    def _table(self, place: int) -> VerdictTable:
        return self._flavour.verdicts.aside(self._counted[place].shape)
