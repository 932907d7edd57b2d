"""Memory for numbers that are looked at in no order: on large pages, where the system has them.

`columns` keeps its tables here. Which row a decision looks at is a matter of chance, and on a large cluster finding the
page of a number takes longer than the number. Tables of a small cluster are left to NumPy."""

from __future__ import annotations

import math
import mmap
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LARGE: Final = 1 << 21
"""Bytes of a large page; smaller tables have no use for one."""
ON_LARGE_PAGES: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)


def zeros(shape: tuple[int, ...], kind: type[Any]) -> NDArray[Any]:
    """Nothing of it takes memory before it is written to, as with NumPy's."""
    count = math.prod(shape)
    size = count * np.dtype(kind).itemsize
    if size < LARGE or ON_LARGE_PAGES is None:
        return np.zeros(shape, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A kernel without them gives small ones.
    with suppress(OSError):
        memory.madvise(ON_LARGE_PAGES)
    return np.frombuffer(memory, kind, count).reshape(shape)
