"""What goes into a kernel and what comes out: rows of one kind as arrays, a code or score per row.

`columns` hands out blocks as views of its arrays, `verdicts` stores outcomes. Rows whose charges are known only as
intervals, and rows with devices that lie in several zones at once, are not for kernels: their caller asks the row
model. Amounts beyond 2^52 are cut by `columns`, so that a hundred times a sum over zones fits an int64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.columns.noderules import NodeRules
from numalign.placement.rules.nodeamounts import AmountsKernel

if TYPE_CHECKING:
    from numalign.placement.kernels.plan import Plan

Amounts = NDArray[np.int64]
Masks = NDArray[np.uint8]
Codes = NDArray[np.signedinteger[Any]]
Rows = NDArray[np.int32]

UNFIT: Final = -1
ASK: Final = -3
"""Counts do not decide: the row model is to be asked. (-2, not certain, is for rows that kernels never see.)"""
NO_ROOM: Final = -4
"""The node as a whole has no room, as `decisions.Code.TOTALS` says."""
OPEN: Final = -9
"""Instead of an answer that holds for all rows of a kind that have room: the zones decide."""


class RowTotals(NamedTuple):
    """What a kernel looks at before zones, by [row] and [row, column]."""

    kind: NDArray[np.int32]
    loose: NDArray[np.bool_]
    """Rows that are always for the row model."""
    pods: NDArray[np.int32]
    most_pods: NDArray[np.int32]
    spare: Amounts
    """What is left of the node as a whole."""


class RowBlock(NamedTuple):
    """Rows with equal rules, by [row, zone position, column]; what nodes have at all is by [stock, zone position,
    column]. Arrays may have more zones than the rules name."""

    rules: NodeRules
    free: Amounts
    """At most `size`; negative where pods hold more than there is, which counts as nothing."""
    stock: Rows
    """By row."""
    size: Amounts
    allocatable: Amounts
    homeless: Amounts
    """Free devices without a zone, by [row, column]."""
    homeless_size: Amounts
    """All devices without a zone, by [stock, column]: with `size` it tells whether a device plugin serves the resource
    on this row."""
    full_core_cpus: Amounts
    """What `full-pcpus-only` counts, by row, pods charged; negative: not known."""
    cells: Masks
    """The memory group of each zone, by [row, zone position]."""
    busy: Masks
    split_known: NDArray[np.bool_]
    """Whether no core is partly free, so that counts tell how CPUs are divided among zones."""
    totals: RowTotals | None = None
    """None: only zones are evaluated."""

    @property
    def zones(self) -> tuple[NDArray[Any], ...]:
        """What `evaluate` reads."""
        return self[1:-1]

    def of(self, row: int) -> tuple[NDArray[Any], ...]:
        """The same for one row."""
        stock = self.stock.item(row)
        by_row = self.free, self.homeless, self.full_core_cpus, self.cells, self.busy, self.split_known
        by_stock = self.size, self.allocatable, self.homeless_size
        return *[each[row] for each in by_row], *[each[stock] for each in by_stock]


def with_room(block: RowBlock, plan: Plan) -> RowBlock:
    """The block, with room for columns and zones that no row has shown: rare, as `columns` makes it beforehand."""
    _, zones, columns = block.free.shape
    if plan.zones <= zones and plan.columns[-1] < columns:
        return block
    missing = (0, max(0, plan.zones - zones)), (0, max(0, plan.columns[-1] + 1 - columns))
    return block._replace(
        free=np.pad(block.free, ((0, 0), *missing)),
        size=np.pad(block.size, ((0, 0), *missing)),
        allocatable=np.pad(block.allocatable, ((0, 0), *missing)),
        homeless=np.pad(block.homeless, ((0, 0), missing[1])),
        homeless_size=np.pad(block.homeless_size, ((0, 0), missing[1])),
        cells=np.pad(block.cells, ((0, 0), missing[0])),
    )


class Question(Struct, kw_only=True):
    """What a shape asks of all rows of one kind."""

    kind: int
    plan: Plan
    asked: Amounts
    """What the pod requests of the node as a whole, as (column, amount) row by row."""
    outright: int = OPEN
    """The answer of every row that has room, whatever its zones have."""
    penalty: int = 0
    """What is deducted from scores, of which 1 remains."""
    call: Any = None
    """The kernel's own form of it."""


class Pending(NamedTuple):
    """What counting looks at where pods are on their way to a row, by row."""

    settled: Amounts
    """What is free without them, by [row, zone position, column]."""
    shape: NDArray[np.int32]
    """Their shape, as `columns.pending_shape` has it."""
    own: int
    """The shape that is counted: its pods change places with each other."""
    trusted: bool
    """Whether pods are admitted in the order of their binding."""


class Counts(NamedTuple):
    """By row that was asked about. `codes`: why the next pod is not admitted, `ASK` where the row model has to count.
    `spread`: pods that are admitted, by the zone that they have everything in; the last number is of all others."""

    codes: Codes
    spread: Amounts


class Outcomes(NamedTuple):
    """`code_or_score`: 1 to 100 fits, else a code from above. `masks`: zones by step, 0 where any zone will do."""

    code_or_score: Codes
    masks: Masks


class Kernel(AmountsKernel, Protocol):
    """The modules `scalar` and `compiled`: the same functions, as plain Python and as machine code."""

    def evaluate(self, block: RowBlock, rows: Rows, plan: Plan) -> Outcomes: ...

    def evaluate_row(self, block: RowBlock, row: int, plan: Plan) -> tuple[int, tuple[int, ...]]: ...

    def survey(self, block: RowBlock, question: Question, rows: Rows, codes: Codes, masks: Masks) -> int:
        """Write code or score, and zones, of those rows that are of the question's kind, each at its row. The number of
        rows that are left to the row model: their code is `ASK`."""
        ...

    def count(self, block: RowBlock, question: Question, pending: Pending, rows: Rows) -> Counts:
        """How many pods these rows, all of the question's kind, admit one after the other. The question's plan is one
        of `plan.counting`."""
        ...
