"""Which rows changed, in order, for readers that each look when they please.

`columns` appends, every shape's verdicts remember how far they have read. The log is a ring: a reader that lags
behind by more than its length reads all rows again."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LENGTH: Final = 1 << 13
FEW: Final = 8
"""Entries up to which one after the other is faster than arrays over them."""
SOME: Final = 64
"""Entries up to which a set is faster than an array."""
Rows = NDArray[np.int32]


class ChangeLog:
    """Row numbers by generation: entry g lies at g modulo the ring's length."""

    def __init__(self) -> None:
        self.ring: Rows = np.zeros(LENGTH, np.int32)
        self._row_at = self.ring.data
        """The same, for single rows: a view is quicker at that."""
        self.generation = 0

    def append(self, row: int) -> None:
        self._row_at[self.generation & (LENGTH - 1)] = row
        self.generation += 1

    @property
    def last(self) -> int:
        """The row that changed last; the first one, if none has."""
        return self._row_at[(self.generation - 1) & (LENGTH - 1)]

    def few_since(self, generation: int, most: int = FEW) -> list[int] | None:
        """The rows that changed since then, some more than once; None: more than so many changes. Quick."""
        behind, place = self.generation - generation, generation & (LENGTH - 1)
        if behind <= 1:
            # As it mostly is: a slice takes longer.
            return [self._row_at[place]] if behind else []
        if behind > most or place + behind > LENGTH:
            return None
        found: list[int] = self.ring[place : place + behind].tolist()
        return found

    def since(self, generation: int) -> Rows | None:
        """The rows that changed since then, each once; None: too many to tell."""
        behind = self.generation - generation
        if behind > LENGTH:
            return None
        if behind <= 1:
            return self.ring[generation & (LENGTH - 1) :][:behind].copy()
        place = generation & (LENGTH - 1)
        if behind <= SOME and place + behind <= LENGTH:
            return np.fromiter(set(self.ring[place : place + behind].tolist()), np.int32)
        places = np.arange(generation, self.generation) & (LENGTH - 1)
        return np.unique(self.ring[places])
