"""A table follows its amounts, and asks again only about rows that changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from numalign.placement.columns.changelog import LENGTH, ChangeLog
from numalign.placement.rules.rowclasses import FEW, Rows, RowTable

ROWS = 4 * FEW
EVERY_ROW = np.arange(ROWS)


class Doubling:
    """Twice the amount; remembers which rows were asked about."""

    def __init__(self) -> None:
        self.amounts = np.zeros(ROWS, np.int64)
        self.asked: list[int] = []

    def rows(self, rows: Rows) -> NDArray[np.int64]:
        self.asked += rows.tolist()
        return 2 * self.amounts[rows]

    def row(self, row: int) -> int:
        self.asked.append(row)
        return 2 * int(self.amounts[row])


@given(st.lists(st.lists(st.integers(0, ROWS - 1), max_size=2 * FEW), max_size=5))
def test_it_follows_few_changes_and_many(rounds: list[list[int]]) -> None:
    log, doubling = ChangeLog(), Doubling()
    table = RowTable(doubling)
    for changed in ([], *rounds):
        for row in changed:
            doubling.amounts[row] += 1
            log.append(row)
        assert table.current(log, EVERY_ROW).tolist() == (2 * doubling.amounts).tolist()
        assert set(doubling.asked) in (set(changed), set(range(ROWS)))
        doubling.asked.clear()


def test_whoever_is_far_behind_looks_at_everything_again() -> None:
    log, doubling = ChangeLog(), Doubling()
    table = RowTable(doubling)
    table.current(log, EVERY_ROW)
    doubling.amounts[:] = 5
    for _ in range(LENGTH + 1):
        log.append(0)
    assert table.current(log, EVERY_ROW).tolist() == [10] * ROWS


def test_nobody_can_write_to_it() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RowTable(Doubling()).current(ChangeLog(), EVERY_ROW)[0] = 1
