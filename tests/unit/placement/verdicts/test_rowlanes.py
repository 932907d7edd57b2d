"""Lanes say which rows they are behind with, so that a survey takes over those and no others."""

import pytest

from numalign.placement.columns import changelog
from numalign.placement.columns.columns import Columns
from numalign.placement.verdicts import rowlanes
from numalign.placement.verdicts.rowlanes import KeptLanes


def cluster(nodes: int) -> tuple[Columns, KeptLanes]:
    columns = Columns()
    for number in range(nodes):
        columns.row(f"n{number}")
    return columns, KeptLanes(columns)


def behind(kept: KeptLanes) -> list[int]:
    current = kept.current()
    assert current is not None
    rows: list[int] = current.behind.tolist()
    return rows


def test_at_first_every_row_is_behind() -> None:
    _, kept = cluster(3)
    assert (behind(kept), behind(kept)) == ([0, 1, 2], [])


def test_later_only_rows_that_changed_are() -> None:
    columns, kept = cluster(100)
    behind(kept)
    for row in (7, 3, 7):
        columns.charge_totals(row, [], 1)
    assert (sorted(behind(kept)), behind(kept)) == ([3, 7], [])


def test_after_too_many_changes_all_rows_are() -> None:
    columns, kept = cluster(3)
    behind(kept)
    for _ in range(changelog.LENGTH + 1):
        columns.charge_totals(1, [], 1)
    assert behind(kept) == [0, 1, 2]


def test_they_grow_with_the_columns() -> None:
    columns, kept = cluster(3)
    behind(kept)
    columns.column("example.com/gpu")
    columns.ensure_columns(9)
    current = kept.current()
    assert current is not None
    assert (current.free.shape, current.spare.shape) == ((2, 16, 256), (16, 256))
    assert current.behind.tolist() == [0, 1, 2]


def test_a_large_cluster_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    columns, kept = cluster(3)
    monkeypatch.setattr(rowlanes, "MOST", columns.free.size - 1)
    assert kept.current() is None
