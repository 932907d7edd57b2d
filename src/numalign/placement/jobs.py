"""Everything that a run of `repeating` works on, and a handle by which Python passes it to machine code.

`repeater` makes a job per shape and kind of row and keeps it as long as its arrays are the ones in use. Handing over
some forty arrays takes longer than many a run; a handle is handed over at the price of one. Importing this module
needs numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
from numba.core import types
from numba.experimental import structref

DONE, FULL, ASK_ROW, ASK_PLACE = range(4)
"""All placed; nothing fits; a changed row is not for the kernel; the best row is not for simple tightrows."""
KIND, SHAPE, PENALTY, TRUSTING, GENERATION, SEEN, WANTED, PLACED, ROW, ASKED, NUMBERS = range(11)
"""Where the numbers of a job lie, and how many there are."""


class Whole(NamedTuple):
    """Node totals, and what the shape asks of them."""

    offered: Any
    requested: Any
    pods: Any
    most_pods: Any
    columns: Any
    amounts: Any


class Rows(NamedTuple):
    """What says whether a row is for the kernel, and the row without pods whose turn is open."""

    kind: Any
    loose: Any
    tenure: Any
    ring: Any


class Table(NamedTuple):
    codes: Any
    masks: Any
    best: Any
    count: Any


class Outcome(NamedTuple):
    """By pod: where it went, its zones by container, its score, and whose turn was open there before."""

    rows: Any
    masks: Any
    scores: Any
    tenures: Any


class Scratch(NamedTuple):
    """Rows to evaluate with what comes of them, rows that are not for us, a pod's charges."""

    rows: Any
    codes: Any
    masks: Any
    asked: Any
    charges: Any


class Job(NamedTuple):
    """`block` is a `RowBlock` without rules; `settled` is free without pods whose turn is open. `chances` and `outcome`
    have room for more pods than are `WANTED`."""

    plan: Any
    block: Any
    settled: Any
    whole: Whole
    rows: Rows
    table: Table
    numbers: Any
    chances: Any
    outcome: Outcome
    scratch: Scratch


@structref.register
class HandleType(types.StructRef):
    """What a handle is for numba."""


class Handle(structref.StructRefProxy):
    """A job inside, its arrays kept alive."""


structref.define_boxing(HandleType, Handle)  # type: ignore[no-untyped-call]
structref.define_constructor(Handle, HandleType, ["job"])  # type: ignore[no-untyped-call]
structref.define_attributes(HandleType)  # type: ignore[no-untyped-call]


def _handle(job: Job) -> Any:
    return Handle(job)  # type: ignore[no-untyped-call]


handle: Any = numba.njit(cache=True)(_handle)
