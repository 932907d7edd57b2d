"""Everything that a run of `repeating` works on, and a handle by which Python passes it to machine code.

`repeater` makes a job per shape and kind of row and keeps it as long as its arrays are the ones in use. Handing over
some forty arrays takes longer than many a run; a handle is handed over at the price of one. It only borrows the
arrays, so that machine code need not count who uses them: whoever keeps a handle keeps its job. Importing this module
needs numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
from numba.core import types
from numba.experimental import structref
from numba.extending import intrinsic

DONE, FULL, ASK_ROW, ASK_PLACE, REASONS = range(5)
"""All placed; nothing fits; a changed row is not for the kernel; the best row is not simple; how many there are."""
KIND, SHAPE, PENALTY, TRUSTING, GENERATION, SEEN, WANTED, PLACED, ROW, ASKED, NUMBERS = range(11)
"""Where the numbers of a job lie, and how many there are."""
AT_ROW, AT_SCORE, AT_TENURE, AT_MASKS = range(4)
"""Where the outcomes of a run lie; masks come last, seven to a number."""


class Job(NamedTuple):
    """Arrays only. Those of the cluster are the columns', those of the table its own."""

    plan: Any
    """One record, as the next."""
    work: Any
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
    asked_columns: Any
    """What the shape asks of the node as a whole, and how much of it."""
    asked_amounts: Any
    kind: Any
    """With the next, what says whether a row is for the kernel."""
    loose: Any
    tenure: Any
    ring: Any
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
    some_rows: Any
    """Rows to evaluate, with what comes of them."""
    some_codes: Any
    some_masks: Any
    strange: Any
    """Rows that are not for us."""
    charges: Any
    """A pod's, by place and zone."""


@structref.register
class HandleType(types.StructRef):
    """What a handle is for numba."""


class Handle(structref.StructRefProxy):
    """A job's arrays, borrowed."""


structref.define_boxing(HandleType, Handle)  # type: ignore[no-untyped-call]
structref.define_constructor(Handle, HandleType, Job._fields)  # type: ignore[no-untyped-call]
structref.define_attributes(HandleType)  # type: ignore[no-untyped-call]


@intrinsic
def _borrowed(_: Any, job: Any) -> Any:
    """The same arrays without an owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        views = []
        for number, array in enumerate(job.types):
            view = context.make_array(array)(context, builder, builder.extract_value(arguments[0], number))
            view.meminfo = view.meminfo.type(None)
            view.parent = view.parent.type(None)
            views.append(view._getvalue())
        return context.make_tuple(builder, signature.return_type, views)

    return job(job), generate


def _handle(job: Job) -> Any:
    return Handle(*_borrowed(job))  # type: ignore[call-arg, no-untyped-call]


handle: Any = numba.njit(cache=True)(_handle)
