"""What goes into a kernel and what comes out: rows of one kind as arrays, a code or score per row.

`columns` hands out blocks as views of its arrays, `verdicts` stores outcomes. Rows whose charges are known only as
intervals, and rows with devices that lie in several zones at once, are not for kernels: their caller asks the row
model. Amounts beyond 2^52 are cut by `columns`, so that a hundred times a sum over zones fits an int64."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.noderules import NodeRules

Amounts = NDArray[np.int64]
Masks = NDArray[np.uint8]
Codes = NDArray[np.signedinteger[Any]]
Rows = NDArray[np.int32]
Floats = NDArray[np.float64]

ABREAST: Final = 256
"""Rows that compiled kernels look at side by side."""

UNFIT: Final = -1
ASK: Final = -3
"""Counts do not decide: the row model is to be asked. (-2, not certain, is for rows that kernels never see.)"""
NO_ROOM: Final = -4
"""The node as a whole has too little, whatever its zones have."""


class RowBlock(NamedTuple):
    """Rows with equal rules, by [row, zone position, column]; arrays may have more zones than the rules name."""

    rules: NodeRules
    free: Amounts
    """At most `size`; negative where pods hold more than there is, which counts as nothing."""
    size: Amounts
    allocatable: Amounts
    homeless: Amounts
    """Free devices without a zone, by [row, column]."""
    homeless_size: Amounts
    """All devices without a zone: with `size` it tells whether a device plugin serves the resource on this row."""
    full_core_cpus: Amounts
    """What `full-pcpus-only` counts, by row, pods charged; negative: not known."""
    cells: Masks
    """The memory group of each zone, by [row, zone position]."""
    busy: Masks
    split_known: NDArray[np.bool_]
    """Whether no core is partly free, so that counts tell how CPUs are divided among zones."""


class Nodes(NamedTuple):
    """All rows as nodes, and what is asked of a node as a whole: which rows a survey looks into at all.

    With lanes there is room for a multiple of 256 here, too; rows beyond the last one are of no kind that is asked."""

    number: int
    """The kind of row that is asked."""
    kind: NDArray[np.int32]
    loose: NDArray[np.bool_]
    pods: NDArray[np.int32]
    most_pods: NDArray[np.int32]
    offered: Amounts
    requested: Amounts
    columns: Amounts
    amounts: Amounts
    """What the pod requests, by column."""


class Lanes(NamedTuple):
    """The same amounts once more, one resource of one zone after the other, each over all rows and in floats.

    A survey of all rows reads them from end to end, 256 at a time, so that there is room for a multiple of that.
    Amounts up to 2^52 are whole in floats, too."""

    field: Floats
    """All of them in one piece, room to work in first: how compiled kernels read them."""
    free: Floats
    """By [zone position, column, row], as all that follow a view of the field; nothing is below zero."""
    allocatable: Floats
    spare: Floats
    """What nodes as a whole have left, by [column, row]."""
    odd: Floats
    """1 where a zone takes a closer look, by [zone position, row]: its memory belongs to a group of zones, or some is
    free of what there is nothing of."""
    behind: Rows
    """Rows that have changed since; a survey takes them over before anything else."""


def lanes(room: int, shape: tuple[int, int, int]) -> Lanes:
    """Empty ones after so much room, for so many zones, columns and rows; no row is behind."""
    zones, width, rows = shape
    ends = np.cumsum([room, *(zones * width * rows,) * 2, width * rows, zones * rows])
    field = np.zeros(ends[-1])
    free, allocatable, spare, odd = (field[first:end] for first, end in pairwise(ends.tolist()))
    return Lanes(
        field,
        free.reshape(shape),
        allocatable.reshape(shape),
        spare.reshape(width, rows),
        odd.reshape(zones, rows),
        np.zeros(0, np.int32),
    )


class Left(NamedTuple):
    """Rows that a survey does not decide: those it may not or cannot, and those of other kinds."""

    undecided: Rows
    others: Rows


class Outcomes(NamedTuple):
    """`code_or_score`: 1 to 100 fits, else a code from above. `masks`: zones by step, 0 where any zone will do."""

    code_or_score: Codes
    masks: Masks
