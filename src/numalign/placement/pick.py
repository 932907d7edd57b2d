"""The best row of a shape, found without looking at all of them.

`verdicts` keeps one code per row and, for every block of 64 rows, the block's best code and how many rows have it. A
pick looks at the blocks, then into one block. Among equals every row has the same chance: `chance` is a number from 0
up to 1 that the caller drew."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

BLOCK: Final = 64
NO_ROW: Final = -1
Codes = NDArray[np.int32]


def another(chance: float) -> float:
    """Drawn once per pod; a pod that is tried again goes on with this."""
    return (chance * 997.0 + 0.61803) % 1.0


class Peaks:
    """The best code of each block and the number of rows that have it."""

    def __init__(self, codes: Codes) -> None:
        self.best: Codes = np.empty(0, np.int32)
        self.count: Codes = np.empty(0, np.int32)
        self.rebuild(codes)

    def rebuild(self, codes: Codes) -> None:
        """From all codes; their number is a multiple of the block."""
        blocks = codes.reshape(-1, BLOCK)
        self.best = blocks.max(axis=1)
        self.count = (blocks == self.best[:, None]).sum(axis=1, dtype=np.int32)

    def update(self, codes: Codes, row: int) -> None:
        block = row // BLOCK
        inside = codes[block * BLOCK : (block + 1) * BLOCK]
        best = inside.max()
        self.best[block] = best
        self.count[block] = np.count_nonzero(inside == best)

    def pick(self, codes: Codes, chance: float) -> int:
        """A row of the best code; `NO_ROW` if no row is a candidate."""
        best = self.best.max()
        if best < 0:
            return NO_ROW
        blocks = np.flatnonzero(self.best == best)
        reach = self.count[blocks].cumsum()
        wanted = int(chance * int(reach[-1]))
        place = int(np.searchsorted(reach, wanted, side="right"))
        start = int(blocks[place]) * BLOCK
        before = int(reach[place]) - int(self.count[blocks[place]])
        return start + int(np.flatnonzero(codes[start : start + BLOCK] == best)[wanted - before])
