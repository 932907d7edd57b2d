"""Sums over topology domains: the rows that share a value of one label.

Spreading and pod affinity take counts by row from `podcounts` or `podterms` and ask for them by domain. A domain is a
class of the label's facet; class 0, the rows without the label, is no domain and has the sum 0."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.rules.clusterstate import Flags
from numalign.placement.rules.pods.podcounts import Counts
from numalign.placement.rules.rowclasses import ABSENT, Ids, RowClasses

N = TypeVar("N", bound=np.generic)


class Domains(Struct, frozen=True):
    """The domain of each row, and a sum for each domain, as of one moment."""

    of_row: Ids
    sums: Counts

    @property
    def labelled(self) -> Flags:
        """Rows that are in a domain."""
        return np.not_equal(self.of_row, ABSENT)

    def at_rows(self) -> Counts:
        return gathered(self.sums, self.of_row)

    def at(self, row: int) -> int:
        return int(self.sums[self.of_row[row]])

    def has(self, row: int) -> bool:
        return bool(self.of_row[row] != ABSENT)


def summed(column: RowClasses[str], by_row: Counts, among: Flags | None = None) -> Domains:
    """`among` limits the rows that count."""
    sums = by_class(column.ids, by_row, among, len(column.values))
    sums[ABSENT] = 0
    return Domains(of_row=column.ids, sums=sums)


def by_class(of_row: Ids, by_row: Counts, among: Flags | None, classes: int) -> Counts:
    """Sums by the class of the row, rows without one included."""
    # Most questions are about pods on few of the rows. Sums are made as floats, exact up to 2**53.
    counting = by_row != 0 if among is None else (by_row != 0) & among
    rows = np.flatnonzero(counting)
    return np.bincount(of_row[rows], weights=by_row[rows], minlength=classes).astype(np.int64)


def gathered(by_class: NDArray[N], of_row: Ids) -> NDArray[N]:
    """The value of its class for each row."""
    # Without the check of every class number this takes half the time.
    return np.take(by_class, of_row, mode="clip")


def present(column: RowClasses[str], among: Flags) -> Flags:
    """By class: whether one of those rows is in that domain."""
    found = np.zeros(len(column.values), np.bool_)
    found[column.ids[among]] = True
    found[ABSENT] = False
    return found
