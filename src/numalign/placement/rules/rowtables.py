"""Small numbers by row that follow from amounts, worked out again only for rows whose amounts changed.

Pods of one kind come in hundreds: NodeResourcesFit and BalancedAllocation keep a table per distinct request, and
placing one of the pods changes one row of it. Tables are kept by `totals`, whose log says which rows changed."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.changelog import ChangeLog

Small = NDArray[np.int32]
Rows = NDArray[np.intp]

FEW: Final = 8
"""Changed rows up to which one by one is quicker than all at once."""


class Follows(Protocol):
    """What follows from amounts; both ways give the same numbers. Equal ones share a table."""

    def __hash__(self) -> int: ...

    def rows(self, rows: Rows) -> NDArray[np.signedinteger]: ...

    def row(self, row: int) -> int: ...


class RowTable:
    def __init__(self, follows: Follows) -> None:
        self._follows = follows
        self._values: Small = np.zeros(0, np.int32)
        self._generation = 0

    def current(self, log: ChangeLog, rows: int) -> Small:
        """For that many rows. The array is not to be written to, nor kept: the next call changes it."""
        changed = log.since(self._generation) if len(self._values) == rows else None
        if changed is None:
            self._values = self._follows.rows(np.arange(rows)).astype(np.int32)
        elif len(changed) <= FEW:
            for row in changed.tolist():
                self._values[row] = self._follows.row(row)
        else:
            places = changed.astype(np.intp)
            self._values[places] = self._follows.rows(places)
        self._generation = log.generation
        seen = self._values.view()
        seen.flags.writeable = False
        return seen
