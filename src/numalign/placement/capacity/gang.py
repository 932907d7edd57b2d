"""Finds room for a list of pods as a whole: all of them or none.

The scheduler calls `fit` for requests that ask for all or nothing. Equal pods fit if the counts of all nodes add up to
enough. For pods of several shapes a first-fit search fills one node after the other, the scarcest shape first, on
copies of the rows; what it finds is certain. Where it finds nothing, only a count that is too small proves that there
is no room: the search does not try everything."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from numalign.placement.capacity import count
from numalign.placement.capacity.count import Bound, ShapeCount
from numalign.placement.capacity.walk import RowRefusal, RowTrial
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.kernels.block import Rows

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


def fit(engine: Engine, wanted: Sequence[tuple[Shape, int]], rows: Sequence[Rows | None]) -> GangFit:
    """`wanted`: shapes, and how many pods of each; `rows`: where each may be."""
    counted = [count.count(engine, [shape], own)[0] for (shape, _), own in zip(wanted, rows, strict=True)]
    numbers = [number for _, number in wanted]
    short = tuple(max(0, number - each.total) for number, each in zip(numbers, counted, strict=True))
    if any(short):
        proven = any(
            lacking and each.bound in (Bound.EXACT, Bound.AT_MOST) for lacking, each in zip(short, counted, strict=True)
        )
        return GangFit(room=Room.DOES_NOT_FIT if proven else Room.NOT_FOUND, missing=short)
    flavour = engine.flavour.either(lambda exact: exact, _not_exact)
    best: GangFit | None = None
    for order in _orders(numbers, counted):
        found = _GangSearch(flavour, counted, numbers).filled(order)
        if found.room is Room.FITS:
            return found
        best = found if best is None or sum(found.missing) < sum(best.missing) else best
    assert best is not None, "there is at least one order"
    return best


def _not_exact(_: object) -> ExactFlavour:
    raise AssertionError("counting has refused the flavour")


def _orders(numbers: Sequence[int], counted: Sequence[ShapeCount]) -> list[list[int]]:
    """The scarcest shape first, then the other way round."""
    scarce = sorted(range(len(numbers)), key=lambda place: (counted[place].total / max(1, numbers[place]), place))
    return [scarce] if len(scarce) == 1 else [scarce, scarce[::-1]]


class _GangSearch:
    def __init__(self, flavour: ExactFlavour, counted: Sequence[ShapeCount], numbers: Sequence[int]) -> None:
        self._flavour, self._counted = flavour, counted
        self._left = list(numbers)
        self._placed: dict[int, dict[int, int]] = {}
        self._trials: dict[int, RowTrial] = {}
        self._patience = MOST_TRIED

    def filled(self, order: Sequence[int]) -> GangFit:
        for number, place in enumerate(order):
            self._on_fresh_rows(place, order[number + 1 :])
            self._on_used_rows(place)
        if any(self._left):
            return GangFit(room=Room.NOT_FOUND, missing=tuple(self._left))
        return GangFit(room=Room.FITS, placed=self._placed)

    def _on_fresh_rows(self, place: int, later: Sequence[int]) -> None:
        """Rows that shapes still to come can do without come first, and of these the roomiest: they stay whole."""
        own = self._counted[place]
        counts = {int(row): int(most) for row, most in zip(own.rows, own.counts, strict=True) if most}
        others = (self._counted[each] for each in later)
        useful = {row for each in others for row in each.rows[each.counts > 0].tolist()}
        for row in sorted(counts, key=lambda row: (row in useful, -counts[row], row)):
            if not self._left[place]:
                return
            if row not in self._placed:
                taken = min(counts[row], self._left[place])
                self._placed[row] = {place: taken}
                self._left[place] -= taken

    def _on_used_rows(self, place: int) -> None:
        allowed = set(self._counted[place].rows.tolist())
        table = self._flavour.verdicts.aside(self._counted[place].shape)
        for row in [row for row in self._placed if row in allowed]:
            if not self._left[place] or self._patience <= 0:
                return
            if place in self._placed[row] and len(self._placed[row]) == 1:
                continue  # it is full, or the last pod is on it
            trial = self._trial(row)
            while self._left[place] and trial is not None and self._patience > 0:
                self._patience -= 1
                if isinstance(trial.place(table), RowRefusal):
                    break
                self._placed[row][place] = self._placed[row].get(place, 0) + 1
                self._left[place] -= 1

    def _trial(self, row: int) -> RowTrial | None:
        """The row with the pods that are on it; None: they are not certain to be admitted together."""
        if row not in self._trials:
            made = RowTrial(self._flavour, row)
            for place, pods in self._placed[row].items():
                table = self._flavour.verdicts.aside(self._counted[place].shape)
                for _ in range(pods):
                    self._patience -= 1
                    if self._patience < 0 or isinstance(made.place(table), RowRefusal):
                        return None
            self._trials[row] = made
        return self._trials[row]
