"""Everything that a run of `repeating` works on, and a handle by which Python passes it to machine code.

The cluster's arrays are the same for all shapes: `repeater` hands them over once, as ground. A shape's own it hands
over with the first run, and keeps the handle as long as these arrays are the ones in use: some forty arrays take
longer than many a run, a handle no longer than one. It only borrows the arrays, so that machine code need not count
who uses them: whoever keeps a handle keeps its arrays. Importing this module needs numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
from numba.core import types
from numba.experimental import structref

from numalign.placement.kernels.borrowing import borrowed

DONE, FULL, ASK_ROW, ASK_PLACE, REASONS = range(5)
"""All placed; nothing fits; a changed row is not for the kernel; the best row is not simple; how many there are."""
KIND, SHAPE, PENALTY, TRUSTING, PEAKED, GENERATION, SEEN, WANTED, PLACED, ROW, ASKED, NUMBERS = range(12)
"""Where the numbers of a job lie, and how many there are."""
AT_ROW, AT_SCORE, AT_TENURE, AT_MASKS = range(4)
"""Where the outcomes of a run lie; masks come last, seven to a number."""


class Ground(NamedTuple):
    """The columns' arrays, and room to work in."""

    work: Any
    """One record."""
    free: Any
    """From here on a `RowBlock` without rules."""
    size: Any
    allocatable: Any
    homeless: Any
    homeless_size: Any
    full_core_cpus: Any
    cells: Any
    busy: Any
    split_known: Any
    settled: Any
    """Free without pods whose turn is open."""
    offered: Any
    requested: Any
    pods: Any
    most_pods: Any
    kind: Any
    """With the next, what says whether a row is for the kernel."""
    loose: Any
    tenure: Any
    ring: Any
    some_rows: Any
    """Rows to evaluate, with what comes of them."""
    some_codes: Any
    strange: Any
    """Rows that are not for us."""
    charges: Any
    """A pod's, by place and zone."""


class Own(NamedTuple):
    """A shape's: its plan, its table, its pods."""

    plan: Any
    """One record."""
    asked_columns: Any
    """What the shape asks of the node as a whole, and how much of it."""
    asked_amounts: Any
    codes: Any
    """From here on the table."""
    masks: Any
    best: Any
    count: Any
    tops: Any
    tops_count: Any
    numbers: Any
    chances: Any
    """By pod, as the next; there may be room for more pods than are `WANTED`."""
    placed: Any
    """Row, score, whose turn was open on the row before, and masks."""
    some_masks: Any
    """Of the rows to evaluate."""


@structref.register
class GroundType(types.StructRef):
    """What ground is for numba."""


@structref.register
class HandleType(types.StructRef):
    """What a handle is for numba."""


class GroundHandle(structref.StructRefProxy):
    """The cluster's arrays, borrowed."""


class Handle(structref.StructRefProxy):
    """A job's arrays, borrowed: all of `Ground` and `Own`."""


for _proxy, _type, _fields in (
    (GroundHandle, GroundType, ("arrays",)),
    (Handle, HandleType, Ground._fields + Own._fields),
):
    structref.define_boxing(_type, _proxy)  # type: ignore[no-untyped-call]
    structref.define_constructor(_proxy, _type, _fields)  # type: ignore[no-untyped-call]
    structref.define_attributes(_type)  # type: ignore[no-untyped-call]


def _ground(arrays: tuple[Any, ...]) -> Any:
    return GroundHandle(borrowed(arrays))  # type: ignore[no-untyped-call]


def _handle(
    ground: Any,
    plan: Any,
    asked_columns: Any,
    asked_amounts: Any,
    codes: Any,
    masks: Any,
    best: Any,
    count: Any,
    tops: Any,
    tops_count: Any,
    numbers: Any,
    chances: Any,
    placed: Any,
    some_masks: Any,
) -> Any:
    # One by one: of a tuple numba would look at every part in Python first.
    shape = plan, asked_columns, asked_amounts
    table = codes, masks, best, count, tops, tops_count
    pods = numbers, chances, placed, some_masks
    return Handle(*(ground.arrays + borrowed(shape + table + pods)))  # type: ignore[no-untyped-call]


ground: Any = numba.njit(cache=True)(_ground)
"""Of a plain tuple in the order of `Ground`."""
handle: Any = numba.njit(cache=True)(_handle)
"""Of ground and what is in `Own`."""
