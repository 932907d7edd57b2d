"""The best row of a shape, found without looking at all of them.

`verdicts` keeps one code per row and, for every block of 64 rows, the block's best code and how many rows have it; the
same once more for every 64 blocks. A pick goes down from there. Among equals every row has the same chance: `chance` is
a number from 0 up to 1 that the caller drew."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from numalign.placement.changelog import Rows

BLOCK: Final = 64
"""Rows in a block, and blocks under a top."""
NO_ROW: Final = -1
NOTHING: Final = -1 << 30
"""Code of a block that is there for the even number only."""
Codes = NDArray[np.signedinteger[Any]]
"""Scores end at 100: a byte per row does, as tables of new shapes are made by the thousand."""


def another(chance: float) -> float:
    """Drawn once per pod; a pod that is tried again goes on with this."""
    return (chance * 997.0 + 0.61803) % 1.0


class Peaks:
    """The best code of each block and the number of rows that have it; `tops` the same of blocks."""

    def __init__(self, rows: int, code: int) -> None:
        """Of so many rows, a multiple of the block, that all have this code."""
        blocks = rows // BLOCK
        tops = -(-blocks // BLOCK)
        room = tops * BLOCK
        # One piece of memory: tables of new shapes are made by the thousand.
        whole: Codes = np.zeros(2 * (room + tops), np.int32)
        self.best, self.count = whole[:room], whole[room : 2 * room]
        self.tops, self.tops_count = whole[2 * room : 2 * room + tops], whole[2 * room + tops :]
        self.best[:blocks], self.best[blocks:] = code, NOTHING
        self.count[:blocks] = BLOCK
        self.tops[:], self.tops_count[:] = code, BLOCK * BLOCK
        if room > blocks:
            self.tops_count[-1] -= (room - blocks) * BLOCK

    @classmethod
    def of(cls, codes: Codes) -> Peaks:
        made = cls(len(codes), NOTHING)
        made.rebuild(codes)
        return made

    def rebuild(self, codes: Codes) -> None:
        """From all codes; their number is a multiple of the block."""
        blocks = codes.reshape(-1, BLOCK)
        self.best[: len(blocks)] = best = blocks.max(axis=1)
        self.count[: len(blocks)] = (blocks == best[:, None]).sum(axis=1, dtype=np.int32)
        self._lift_all()

    def rebuild_around(self, codes: Codes, rows: Rows) -> None:
        """The same where only some rows are other than before."""
        blocks = np.flatnonzero(np.bincount(rows // BLOCK))
        inside = codes.reshape(-1, BLOCK).take(blocks, axis=0)
        self.best[blocks] = best = inside.max(axis=1)
        self.count[blocks] = (inside == best[:, None]).sum(axis=1, dtype=np.int32)
        self._lift_all()

    def update(self, codes: Codes, row: int, before: int) -> None:
        """One row's code is another than before; mostly that is a matter of counting."""
        block, code = row // BLOCK, int(codes[row])
        peak, count = int(self.best[block]), int(self.count[block])
        if code > peak:
            self.best[block], self.count[block] = code, 1
        elif code == peak:
            self.count[block] = count + 1
        elif before != peak:
            return
        elif count > 1:
            self.count[block] = count - 1
        else:
            inside = codes[block * BLOCK : (block + 1) * BLOCK].tolist()
            self.best[block] = most = max(inside)
            self.count[block] = inside.count(most)
        self._note(block, peak, count)

    def _note(self, block: int, peak: int, count: int) -> None:
        """Tell the block's top that the block was of this peak and count before."""
        top, now = block // BLOCK, int(self.best[block])
        best, equals = int(self.tops[top]), int(self.tops_count[top])
        if now > best:
            self.tops[top], self.tops_count[top] = now, self.count[block]
            return
        equals += (int(self.count[block]) if now == best else 0) - (count if peak == best else 0)
        self.tops_count[top] = equals
        if not equals:
            self._lift(top)

    def _lift_all(self) -> None:
        over = self.best.reshape(-1, BLOCK)
        self.tops[:] = tops = over.max(axis=1)
        self.tops_count[:] = ((over == tops[:, None]) * self.count.reshape(-1, BLOCK)).sum(axis=1)

    def _lift(self, top: int) -> None:
        best, counts = self._under(top)
        self.tops[top] = most = max(best)
        self.tops_count[top] = sum([count for code, count in zip(best, counts, strict=True) if code == most])

    @property
    def has_candidates(self) -> bool:
        best: int = max(self.tops.tolist())
        return best >= 0

    def pick(self, codes: Codes, chance: float) -> int:
        """A row of the best code; `NO_ROW` if no row is a candidate."""
        tops, counts = self.tops.tolist(), self.tops_count.tolist()
        best = max(tops)
        if best < 0:
            return NO_ROW
        left = int(chance * sum([count for code, count in zip(tops, counts, strict=True) if code == best]))
        top, left = _reached(tops, counts, best, left)
        block, left = _reached(*self._under(top), best, left)
        start = (top * BLOCK + block) * BLOCK
        return start + int((codes[start : start + BLOCK] == best).nonzero()[0][left])

    def _under(self, top: int) -> tuple[list[int], list[int]]:
        """The blocks of a top: their best codes and the numbers of rows that have them."""
        inside = slice(top * BLOCK, (top + 1) * BLOCK)
        return self.best[inside].tolist(), self.count[inside].tolist()


def _reached(codes: list[int], counts: list[int], best: int, left: int) -> tuple[int, int]:
    """Where so many of the best are passed over, and how many of them are left to pass over there."""
    for place, code in enumerate(codes):
        if code == best:
            if counts[place] > left:
                return place, left
            left -= counts[place]
    raise ValueError("there are fewer of the best than that")
