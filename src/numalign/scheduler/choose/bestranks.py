"""Rows by rank, with the best at hand: what `ranks` picks from.

Rows of one rank are listed in their order, so that a draw among equals is a look into a list; but only of ranks that
were the best one, because of the others it is enough to know how many there are. Plain lists, because one row changes
at a time and arrays cost more than that to be asked."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from numalign.placement.verdicts.pick import Codes

OUT: Final = -1
"""The rank of a row that is none to pick."""


class BestRanks:
    def __init__(self, ranks: Codes) -> None:
        """By row, `OUT` or a rank of 0 or more. The array stays the caller's, who tells of every change."""
        self._ranks = ranks
        found, counts = np.unique(ranks[ranks != OUT], return_counts=True)
        self._counts: dict[int, int] = dict(zip(found.tolist(), counts.tolist(), strict=True))
        self._rows: dict[int, list[int]] = {}
        self._best = [-rank for rank in self._counts]
        """A heap of all ranks, the highest first; some may have no rows any more."""
        heapify(self._best)

    def move(self, row: int, before: int, rank: int) -> None:
        """One row's rank is another than before, as the array says by now."""
        counts, rows = self._counts, self._rows
        if before != OUT:
            counts[before] -= 1
            if before in rows:
                equals = rows[before]
                del equals[bisect_left(equals, row)]
        if rank == OUT:
            return
        if rank in rows:
            insort(rows[rank], row)
        if rank in counts:
            counts[rank] += 1
        else:
            counts[rank] = 1
            heappush(self._best, -rank)

    @property
    def first(self) -> Sequence[int]:
        """The rows of the best rank, in their order; none: there is no row to pick."""
        while self._best:
            rank = -self._best[0]
            if self._counts[rank]:
                found = self._rows.get(rank)
                if found is None:
                    found = self._rows[rank] = np.flatnonzero(self._ranks == rank).tolist()
                return found
            del self._counts[rank]
            self._rows.pop(rank, None)
            heappop(self._best)
        return ()
