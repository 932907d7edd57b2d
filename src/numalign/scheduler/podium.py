"""Rows by rank, with the best at hand: what `ranks` picks from.

Rows of one rank are kept in their order, so that a draw among equals is a look into a list. Plain lists, because one
row changes at a time and arrays cost more than that to be asked."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from numalign.placement.pick import Codes

OUT: Final = -1
"""The rank of a row that is none to pick."""


class Podium:
    def __init__(self, ranks: Codes) -> None:
        """By row, `OUT` or a rank of 0 or more."""
        self._rows = _by_rank(ranks)
        self._best = [-rank for rank in self._rows]
        """A heap of all ranks, the highest first; some may have no rows any more."""
        heapify(self._best)

    def move(self, row: int, before: int, rank: int) -> None:
        """One row's rank is another than before."""
        if before != OUT:
            equals = self._rows[before]
            del equals[bisect_left(equals, row)]
        if rank == OUT:
            return
        if rank in self._rows:
            insort(self._rows[rank], row)
        else:
            self._rows[rank] = [row]
            heappush(self._best, -rank)

    @property
    def first(self) -> Sequence[int]:
        """The rows of the best rank, in their order; none: there is no row to pick."""
        while self._best:
            rank = -self._best[0]
            if self._rows[rank]:
                return self._rows[rank]
            del self._rows[rank]
            heappop(self._best)
        return ()


def _by_rank(ranks: Codes) -> dict[int, list[int]]:
    rows = np.flatnonzero(ranks != OUT)
    rows = rows[np.argsort(ranks[rows], kind="stable")]
    found, starts = np.unique(ranks[rows], return_index=True)
    parts = np.split(rows, starts[1:]) if len(rows) else []
    return {rank: part.tolist() for rank, part in zip(found.tolist(), parts, strict=True)}
