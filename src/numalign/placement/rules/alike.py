"""Rows that offer the same and have as much of it taken, kept together as kinds.

`Totals` owns one `AlikeRows`. Most nodes of a cluster are alike: what follows from amounts alone is evaluated once per
kind and gathered by row. Kinds are numbered densely, and their amounts lie side by side. They follow the change log
when they are asked for, so that changes cost nothing while only single rows are of interest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.rules.nodeamounts import AmountColumns, Amounts

VACANT: Final = 0
"""The number, and the kind, of rows that have neither a node nor pods. What follows from their amounts does not count:
it would be an exception to nearly everything that holds for all other rows."""


class Numbered(AmountColumns, Protocol):
    """By row, with a number that only rows of the same amounts have."""

    @property
    def likes(self) -> Sequence[int]: ...

    @property
    def log(self) -> ChangeLog: ...


class AlikeRows:
    def __init__(self, rows: Numbered) -> None:
        self._rows = rows
        self._generation = 0
        self._start()

    def refresh(self) -> None:
        """Look at rows that changed. Everything below is as of the latest call."""
        rows = self._rows
        if rows.allocatable.shape != self._shape:
            self._start()
        changed = rows.log.since(self._generation)
        for row in range(len(self.of_row)) if changed is None else changed.tolist():
            self._follow(row)
        self._generation = rows.log.generation

    @property
    def count(self) -> int:
        return len(self._numbers)

    @property
    def places(self) -> NDArray[np.intp]:
        """All kinds. Some may have no row any more."""
        return self._places[: self.count]

    def _start(self) -> None:
        """All rows are vacant, as before the first change."""
        self._shape = columns, rows = self._rows.allocatable.shape
        # Every row may be of a kind of its own, beside the vacant one.
        kinds = rows + 1
        self.allocatable: Amounts = np.zeros((columns, kinds), np.int64)
        self.requested: Amounts = np.zeros((columns, kinds), np.int64)
        self.scored: Amounts = np.zeros((len(self._rows.scored), kinds), np.int64)
        self.pods: Amounts = np.zeros(kinds, np.int64)
        self.most_pods: Amounts = np.zeros(kinds, np.int64)
        self.of_row: NDArray[np.intp] = np.zeros(rows, np.intp)
        self._kind_at = self.of_row.data
        self._places: NDArray[np.intp] = np.arange(kinds)
        self._numbers = [VACANT]
        """By kind, the number of its rows."""
        self._kinds = {VACANT: VACANT}
        """By number."""
        # One more, so that this kind is never given another number.
        self._uses = [rows + 1]
        self._unused: list[int] = []
        self._generation = 0

    def _follow(self, row: int) -> None:
        number, before = self._rows.likes[row], self._kind_at[row]
        if self._numbers[before] == number:
            return
        self._uses[before] -= 1
        if not self._uses[before]:
            del self._kinds[self._numbers[before]]
            self._unused.append(before)
        kind = self._kinds.get(number)
        if kind is None:
            kind = self._kinds[number] = self._made(number, row)
        self._uses[kind] += 1
        self._kind_at[row] = kind

    def _made(self, number: int, row: int) -> int:
        if self._unused:
            kind = self._unused.pop()
        else:
            kind = len(self._numbers)
            self._numbers.append(number)
            self._uses.append(0)
        self._numbers[kind] = number
        rows = self._rows
        self.allocatable[:, kind], self.requested[:, kind] = rows.allocatable[:, row], rows.requested[:, row]
        self.scored[:, kind], self.pods[kind], self.most_pods[kind] = (
            rows.scored[:, row],
            rows.pods[row],
            rows.most_pods[row],
        )
        return kind
