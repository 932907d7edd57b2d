"""The best row of a shape, found without looking at all of them.

`verdicts` keeps one code per row and, for every block of 64 rows, the block's best code and how many rows have it; the
same once more for every 64 blocks. A pick goes down from there. Among equals every row has the same chance: `chance` is
a number from 0 up to 1 that the caller drew."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BLOCK: Final = 64
"""Rows in a block, and blocks under a top."""
NO_ROW: Final = -1
NOTHING: Final = -128
"""Code of a block that is there for the even number only."""
Codes = NDArray[np.signedinteger[Any]]
"""Scores end at 100: a byte per row does, as tables of new shapes are made by the thousand. Bytes are also what Python
looks through fastest."""


def another(chance: float) -> float:
    """Drawn once per pod; a pod that is tried again goes on with this."""
    return (chance * 997.0 + 0.61803) % 1.0


def best_row(codes: Codes, chance: float) -> int:
    """What `Peaks.pick` says, by one look at all codes: for whoever picks once before many of them change again."""
    best = int(np.maximum.reduce(codes))
    if best < 0:
        return NO_ROW
    (equals,) = (codes == best).nonzero()
    return int(equals[int(chance * len(equals))])


class Peaks:
    """The best code of each block and the number of rows that have it; `tops` the same of blocks."""

    def __init__(self, rows: int) -> None:
        """Room for those of so many rows, a multiple of the block; nothing is known before `rebuild`."""
        blocks = rows // BLOCK
        tops = -(-blocks // BLOCK)
        room = tops * BLOCK
        # One piece of memory: tables of new shapes are made by the thousand.
        whole: Codes = np.zeros(2 * room + 3 * tops, np.int8)
        self.tops_count = whole[: 2 * tops].view(np.int16)
        self.tops, self.best, self.count = whole[2 * tops : 3 * tops], whole[3 * tops : -room], whole[-room:]
        self.best[blocks:] = NOTHING

    @classmethod
    def of(cls, codes: Codes) -> Peaks:
        made = cls(len(codes))
        made.rebuild(codes)
        return made

    @cached_property
    def _numbers(self) -> tuple[memoryview, memoryview, memoryview, memoryview]:
        """The four arrays as Python reads and writes single numbers of them fastest; machine code never asks."""
        return self.best.data, self.count.data, self.tops.data, self.tops_count.data

    def rebuild(self, codes: Codes) -> None:
        """From all codes; their number is a multiple of the block."""
        blocks = codes.reshape(-1, BLOCK)
        self.best[: len(blocks)] = best = blocks.max(axis=1)
        self.count[: len(blocks)] = (blocks == best[:, None]).sum(axis=1, dtype=np.int8)
        over = self.best.reshape(-1, BLOCK)
        self.tops[:] = tops = over.max(axis=1)
        self.tops_count[:] = ((over == tops[:, None]) * self.count.reshape(-1, BLOCK)).sum(axis=1, dtype=np.int16)

    def update(self, codes: Codes, row: int, before: int) -> None:
        """One row's code is another than before; mostly that is a matter of counting."""
        best, counts, _, _ = self._numbers
        block, code = row // BLOCK, codes.item(row)
        peak, count = best[block], counts[block]
        if code > peak:
            best[block], counts[block] = code, 1
        elif code == peak:
            counts[block] = count + 1
        elif before != peak:
            return
        elif count > 1:
            counts[block] = count - 1
        else:
            inside = codes[block * BLOCK : (block + 1) * BLOCK].tolist()
            best[block] = most = max(inside)
            counts[block] = inside.count(most)
        self._note(block, peak, count)

    def _note(self, block: int, peak: int, count: int) -> None:
        """Tell the block's top that the block was of this peak and count before."""
        best, counts, tops, tops_count = self._numbers
        top, now = block // BLOCK, best[block]
        if now > tops[top]:
            tops[top], tops_count[top] = now, counts[block]
            return
        equals = tops_count[top] + (counts[block] if now == tops[top] else 0) - (count if peak == tops[top] else 0)
        tops_count[top] = equals
        if not equals:
            self._lift(top)

    def _lift(self, top: int) -> None:
        best, counts, tops, tops_count = self._numbers
        inside = slice(top * BLOCK, (top + 1) * BLOCK)
        under = best[inside].tolist()
        tops[top] = most = max(under)
        tops_count[top] = sum([count for code, count in zip(under, counts[inside], strict=True) if code == most])

    def pick(self, codes: Codes, chance: float) -> int:
        """A row of the best code; `NO_ROW` if no row is a candidate."""
        best, counts, tops, tops_count = self._numbers
        over = tops.tolist()
        code = max(over)
        if code < 0:
            return NO_ROW
        left = int(chance * sum([count for each, count in zip(over, tops_count, strict=True) if each == code]))
        top, left = _reached(over, tops_count, code, left)
        under = slice(top * BLOCK, (top + 1) * BLOCK)
        block, left = _reached(best[under].tobytes(), counts[under].tobytes(), code, left)
        first = (top * BLOCK + block) * BLOCK
        inside = codes[first : first + BLOCK].tobytes()
        place = inside.index(code)
        for _ in range(left):
            place = inside.index(code, place + 1)
        return first + place


def _reached(codes: Iterable[int], counts: Iterable[int], best: int, left: int) -> tuple[int, int]:
    """Where so many of the best are passed over, and how many of them are left to pass over there."""
    for place, (code, count) in enumerate(zip(codes, counts, strict=True)):
        if code == best:
            if count > left:
                return place, left
            left -= count
    raise ValueError("there are fewer of the best than that")
