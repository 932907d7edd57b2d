"""Nodes become rows of numbers; rows are reused, arrays grow, and every change is on record."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.columns import changelog
from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.columns.columns import LARGEST, UNREPORTED, VACANT, Columns, FreeRow
from numalign.placement.columns.nodefacts import Groups, RowFacts, Supply, supplies_of
from numalign.placement.columns.noderules import NodeRules

NIC = "example.com/nic"


def supply(*free: int, **more: Any) -> Supply:
    return Supply(size=free, allocatable=free, free=free, **more)


def facts(zones: int = 2, supplies: Mapping[str, Supply] | None = None) -> RowFacts:
    return RowFacts(node="n", rules=NodeRules(zones=tuple(range(zones))), supplies=supplies_of(supplies or {}))


def free(*cpus: int, **more: Any) -> FreeRow:
    return FreeRow(free=cpus, settled=cpus, homeless=[0], **more)


def described(zones: int = 2, supplies: Mapping[str, Supply] | None = None) -> tuple[Columns, int]:
    columns = Columns()
    row = columns.row("n")
    columns.describe(row, facts(zones, supplies))
    return columns, row


def test_a_node_keeps_its_row() -> None:
    columns = Columns()
    first, second = columns.row("a"), columns.row("b")
    assert (columns.row("a"), columns.row("b")) == (first, second)
    assert first != second


def test_a_new_row_has_no_report_and_a_dropped_one_is_vacant() -> None:
    columns = Columns()
    row = columns.row("a")
    assert columns.kind[row] == UNREPORTED
    columns.drop("a")
    assert columns.kind[row] == VACANT


def test_the_row_of_a_node_that_is_gone_starts_from_nothing() -> None:
    columns, row = described(2, {"cpu": supply(4, 4)})
    columns.set_totals(row, {"cpu": 8000}, 110)
    columns.drop("n")
    assert columns.row("other") == row
    assert not columns.size[columns.stock[row]].any()
    assert not columns.offered[row].any()


def test_amounts_lie_by_zone_and_column() -> None:
    columns, row = described(2, {"cpu": supply(4, 6), NIC: supply(1, 0)})
    nic = columns.column(NIC)
    assert columns.size[columns.stock[row], :2, [0, nic]].tolist() == [[4, 6], [1, 0]]


def test_a_later_report_forgets_what_it_does_not_mention() -> None:
    columns, row = described(2, {"cpu": supply(4, 6), NIC: supply(1, 0)})
    columns.describe(row, facts(2, {"cpu": supply(2, 2)}))
    assert columns.size[columns.stock[row], :, columns.column(NIC)].tolist() == [0, 0]


def test_arrays_grow_in_every_direction_and_keep_what_they_hold() -> None:
    columns, row = described(2, {"cpu": supply(4, 6)})
    for number in range(200):
        columns.row(f"more-{number}")
        columns.column(f"example.com/{number % 20}")
    columns.describe(columns.row("wide"), facts(8, {"cpu": supply(*range(8))}))
    assert columns.size[columns.stock[row], :2, 0].tolist() == [4, 6]
    assert columns.size[columns.stock[columns.rows["wide"]], :, 0].tolist() == list(range(8))


def test_nodes_that_have_the_same_share_one_stock() -> None:
    columns = Columns()
    for name, zones in (("a", supply(4, 6)), ("b", supply(4, 6)), ("c", supply(4, 5))):
        columns.describe(columns.row(name), facts(2, {"cpu": zones}))
    stocks = [int(columns.stock[columns.rows[name]]) for name in "abc"]
    assert stocks[0] == stocks[1] != stocks[2]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(-1, 25)), max_size=80))
def test_every_row_has_the_stock_of_its_latest_report(reports: list[tuple[int, int]]) -> None:
    """More stocks than there is room for at first; -1: the node is gone."""
    columns, latest = Columns(), dict[str, int]()
    for node, amount in reports:
        name = f"n{node}"
        if amount >= 0:
            columns.describe(columns.row(name), facts(2, {"cpu": supply(amount, 9), NIC: supply(0, amount)}))
            latest[name] = amount
        elif latest.pop(name, None) is not None:
            columns.drop(name)
    for name, amount in latest.items():
        stock = columns.stock[columns.rows[name]]
        assert columns.size[stock, :2, 0].tolist() == columns.allocatable[stock, :2, 0].tolist() == [amount, 9]
        assert columns.size[stock, :2, columns.column(NIC)].tolist() == [0, amount]
    assert len({int(columns.stock[columns.rows[name]]) for name in latest}) == len(set(latest.values()))


def test_totals_of_more_resources_than_there_is_room_for() -> None:
    columns, row = described()
    columns.set_totals(row, {f"example.com/{number}": number + 1 for number in range(20)}, 110)
    found = [int(columns.offered[row, columns.column(f"example.com/{number}")]) for number in range(20)]
    assert found == list(range(1, 21))


def test_rows_that_follow_equal_rules_are_of_one_kind() -> None:
    columns = Columns()
    for name, zones in (("a", 2), ("b", 2), ("c", 4)):
        columns.describe(columns.row(name), facts(zones))
    kinds = [int(columns.kind[columns.rows[name]]) for name in "abc"]
    assert kinds[0] == kinds[1] != kinds[2]
    assert columns.rules(columns.rows["c"]) == NodeRules(zones=(0, 1, 2, 3))


def test_absurd_amounts_are_cut() -> None:
    columns, row = described(2, {"cpu": supply(1 << 62, -(1 << 62))})
    assert columns.size[columns.stock[row], :2, 0].tolist() == [LARGEST, -LARGEST]


def test_zones_beyond_those_of_arrays_are_left_out() -> None:
    columns, row = described(12, {"cpu": supply(*range(12))})
    columns.set_free(row, free(*range(12)))
    assert columns.free[row, :, 0].tolist() == list(range(8))


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_what_is_free_is_written_to_its_own_row_and_nowhere_else(zones: int, width: int, data: st.DataObject) -> None:
    columns = Columns()
    columns.ensure_columns(9)
    first, row, last = map(columns.row, ("first", "n", "last"))
    columns.describe(row, facts(zones))
    amounts = st.lists(st.integers(-3, LARGEST + 3), min_size=zones * width, max_size=zones * width)
    state = FreeRow(free=data.draw(amounts), settled=data.draw(amounts), homeless=list(range(width)))
    columns.set_free(row, state)
    for array, wanted in ((columns.free, state.free), (columns.settled, state.settled)):
        assert array[row, :zones, :width].ravel().tolist() == [min(amount, LARGEST) for amount in wanted]
        assert np.count_nonzero(array) == np.count_nonzero(wanted)
    assert columns.homeless[row].tolist() == [*range(width), *[0] * (columns.homeless.shape[1] - width)]
    assert not columns.homeless[[first, last]].any()
    assert columns.cells[row, :zones].tolist() == [1 << zone for zone in range(zones)]
    assert not columns.cells[[first, last]].any()


def test_zones_are_their_own_memory_group_until_told_otherwise() -> None:
    columns, row = described(2, {"cpu": supply(4, 6)})
    columns.set_free(row, free(4, 6))
    assert columns.cells[row, :2].tolist() == [1, 2]
    columns.set_free(row, free(4, 6, groups=Groups((3, 3), 3)))
    assert (columns.cells[row, :2].tolist(), int(columns.busy[row])) == ([3, 3], 3)


def test_node_totals_are_charged_and_given_back() -> None:
    columns, row = described()
    columns.charge_totals(row, [(0, 1500)], 1)
    columns.charge_totals(row, [(0, 500)], 1)
    columns.charge_totals(row, [(0, -1500)], -1)
    assert (columns.requested(row, 0), columns.pods[row]) == (500, 1)


CHANGES = {
    "described": lambda columns, row: columns.describe(row, facts(2, {"cpu": supply(1, 1)})),
    "freed": lambda columns, row: columns.set_free(row, free(1, 1)),
    "offered": lambda columns, row: columns.set_totals(row, {"cpu": 1}, 1),
    "charged": lambda columns, row: columns.charge_totals(row, [(0, 1)], 1),
    "dropped": lambda columns, row: columns.drop("n"),
}


def test_single_numbers_are_those_of_the_arrays_however_these_grow() -> None:
    columns, row = described()
    for name in ("a/b", "c/d", "e/f", "g/h", "i/j", "k/l", "m/n", "o/p"):
        flat, column = columns.flat, columns.column(name)
        assert (columns.flat is flat) == (column < flat.width)
        flat = columns.flat
        flat.free[row * flat.span + flat.width + column] = 7
        flat.spare[row * flat.width + column] = -3
        assert (columns.free[row, 1, column], columns.requested(row, column)) == (7, 3)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_logged(change: Any) -> None:
    columns, row = described()
    before = columns.log.generation
    change(columns, row)
    assert columns.log.since(before) == [row]


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 30))
def test_the_log_names_each_row_that_changed_since_then_once(rows: list[int], seen: int) -> None:
    log = ChangeLog()
    for row in rows:
        log.append(row)
    seen = min(seen, len(rows))
    found, few = log.since(seen), log.few_since(seen)
    assert few is None or (set(few) == set(rows[seen:]) and len(rows) - seen <= changelog.FEW)
    assert found is not None
    assert sorted(found.tolist()) == sorted(set(rows[seen:]))


def test_whoever_lags_behind_the_log_is_told_to_look_at_everything() -> None:
    log = ChangeLog()
    for row in range(changelog.LENGTH + 1):
        log.append(row)
    assert log.since(0) is None
    found = log.since(1)
    assert found is not None
    assert len(found) == changelog.LENGTH


def test_fifty_thousand_large_nodes_fit_in_half_a_gigabyte() -> None:
    columns = Columns()
    row = columns.row("n")
    columns.describe(row, facts(8, {f"example.com/{number}": supply(*range(8)) for number in range(14)}))
    per_row = columns.nbytes / len(columns.kind)
    assert per_row * (1 << 16) < 400 * (1 << 20)
    assert columns.free.shape[1:] == (8, 16)
    assert columns.free.dtype == np.int64
