"""Verdicts, zones and scores of one program for many rows: the same rules three times, equal by test.

`arrays` is NumPy over all rows, `compiled` is numba row by row, `scalar` is plain Python for a single row. The engine
asks `best` which one to use; rows that none of them decides come back as `block.ASK`, for the row model."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType
from typing import Protocol, cast

from numalign.placement.columns.requests import Program
from numalign.placement.kernels import arrays
from numalign.placement.kernels.block import Lanes, Left, Nodes, Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.strategies import Scoring


class RowKernel(Protocol):
    """What all three have in common. Plans come from `plans.plan`."""

    def evaluate(self, block: RowBlock, rows: Rows, program: Program, scoring: Scoring) -> Outcomes: ...

    def evaluate_row(self, block: RowBlock, row: int, made: Plan) -> tuple[int, tuple[int, ...]]: ...


class Kernel(RowKernel, Protocol):
    """What the two for many rows can do besides."""

    def survey(
        self, block: RowBlock, nodes: Nodes, rows: Rows, made: Plan, answers: Outcomes, every: Lanes | None = None
    ) -> Left:
        """`every`: the lanes of all rows, where `rows` are all there are."""
        ...


def best() -> Kernel:
    """The compiled kernel once `warm` has made it ready, until then NumPy."""
    return cast(Kernel, _compiled if _compiled is not None else arrays)


def warm() -> bool:
    """Compile, or load what an earlier process compiled; False where numba is missing.

    Takes a second, or half a minute the first time ever. The caller may run it in a thread of its own."""
    global _compiled
    if find_spec("numba") is None:
        return False
    from numalign.placement.kernels import compiled

    compiled.warm()
    _compiled = compiled
    return True


_compiled: ModuleType | None = None
