"""Rows that have the same amounts are evaluated as one, and no answer differs from that of the row alone."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import quantity
from numalign.api.objects.node import Node, NodeStatus
from numalign.placement.columns.changelog import LENGTH
from numalign.placement.rules import nodeamounts
from numalign.placement.rules import totals as totals_module
from numalign.placement.rules.alike import VACANT, AlikeRows
from numalign.placement.rules.nodeamounts import (
    BALANCE,
    FIT,
    LEAST,
    MOST,
    AmountColumns,
    AmountRanks,
    AmountTerms,
    Asked,
    RankedRows,
)
from numalign.placement.rules.totals import CPU, MEMORY, ByAmounts, Charge, Totals

ROWS = 12
DEVICE = 4
CHARGES = [
    Charge(((CPU, 700), (MEMORY, 3)), (700, 3)),
    Charge(((CPU, 100), (MEMORY, 5), (DEVICE, 1)), (100, 5)),
    Charge((), (100, 200)),
]
RESOURCES = ({"cpu": 1, "memory": 40, "pods": 3}, {"cpu": 2, "memory": 40, "example.com/gpu": 2, "pods": 9}, {"cpu": 3})
NODES = [
    Node(status=NodeStatus(allocatable={name: quantity.of(amount) for name, amount in each.items()}))
    for each in RESOURCES
]
MORE = Node(status=NodeStatus(allocatable={f"example.com/r{number}": quantity.of(7) for number in range(6)}))
"""Resources for which columns are added."""

rows = st.integers(0, ROWS - 1)
changes = st.one_of(
    st.tuples(st.just("offer"), rows, st.sampled_from([*NODES, MORE, None])),
    st.tuples(st.just("add"), rows, st.sampled_from(CHARGES)),
    st.tuples(st.just("subtract"), rows, st.sampled_from(CHARGES)),
    st.tuples(st.just("grow"), st.just(0), st.integers(1, 5)),
    st.tuples(st.just("ask"), st.just(0), st.just(None)),
)


ADDED = Asked(CPU, 600, 1, True), Asked(MEMORY, 30, 3, True)
GPU = Asked(DEVICE, 1, 2)
TERMS = [
    AmountTerms(FIT, (*ADDED, GPU)),
    AmountTerms(LEAST, (*ADDED, GPU)),
    AmountTerms(MOST, (*ADDED, GPU)),
    AmountTerms(BALANCE, ADDED),
    AmountTerms(BALANCE, (*ADDED, GPU)),
]


def play(totals: Totals, verb: str, row: int, what: Any) -> None:
    if verb == "grow":
        totals.grow(len(totals.pods) + what)
    elif verb != "ask":
        getattr(totals, verb)(row, what)


@given(st.lists(changes, max_size=40))
def test_tables_by_likeness_equal_tables_row_by_row(played: list[tuple[str, int, Any]]) -> None:
    totals = Totals(ROWS)
    with patch.object(totals_module, "MANY", 0):
        for verb, row, what in (*played, ("ask", 0, None)):
            play(totals, verb, row, what)
            every = np.flatnonzero(totals.likes)
            summed = np.zeros(len(every), np.int64)
            for weight, terms in enumerate(TERMS if verb == "ask" else ()):
                each = ByAmounts(terms, totals)
                expected = [each.row(row) for row in every.tolist()]
                assert totals.table(each)[every].tolist() == expected
                assert each.rows(every[1::2]).tolist() == expected[1::2]
                assert nodeamounts.amounts(terms, totals, every).tolist() == expected
                summed += weight * np.array(expected, np.int64)
            if verb == "ask":
                assert totals.summed(list(enumerate(TERMS)), every).tolist() == summed.tolist()


@given(st.lists(changes, max_size=40), st.sampled_from([*NODES, MORE, None]))
def test_a_row_without_node_and_pods_is_vacant(played: list[tuple[str, int, Any]], node: Node | None) -> None:
    totals = Totals(ROWS)
    for change in played:
        play(totals, *change)
        for row, number in enumerate(totals.likes):
            if number == VACANT:
                assert not any(part[..., row].any() for part in (totals.allocatable, totals.requested, totals.scored))
                assert (totals.pods[row], totals.most_pods[row]) == (0, 0)
    totals.offer(ROWS - 1, node)
    assert node is None or totals.likes[ROWS - 1] != VACANT


def test_a_node_that_offers_nothing_is_there() -> None:
    totals = Totals(1)
    totals.offer(0, Node())
    assert totals.likes != [VACANT]
    totals.offer(0, None)
    assert totals.likes == [VACANT]


@given(st.lists(changes, max_size=40))
def test_a_kind_has_the_amounts_of_its_rows_and_no_two_kinds_in_use_are_one(played: list[tuple[str, int, Any]]) -> None:
    totals = Totals(ROWS)
    alike = AlikeRows(totals)
    for change in (*played, ("ask", 0, None)):
        play(totals, *change)
        if change[0] == "ask":
            alike.refresh()
            for name in ("allocatable", "requested", "scored", "pods", "most_pods"):
                assert (getattr(alike, name)[..., alike.of_row] == getattr(totals, name)).all()
            assert len(set(alike.of_row.tolist())) == len(set(totals.likes))
            assert alike.count <= len(totals.pods) + 1


class Counting:
    """Remembers of how many places it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def amounts(self, terms: AmountTerms, columns: AmountColumns, places: Any) -> Any:
        self.asked.append(len(places))
        return np.zeros(len(places), np.int32)

    def ranked(self, terms: AmountRanks, columns: AmountColumns, places: Any) -> Any:
        self.asked.append(len(places))
        return np.zeros(len(places), np.int32)

    def rank(self, terms: AmountRanks, columns: AmountColumns, places: Any, rows: RankedRows, ranks: Any) -> Any:
        self.asked.append(len(places))
        assert len(rows.place) == len(rows.base) == len(rows.codes) == len(ranks)
        return 0, 0


@pytest.mark.parametrize("apart, asked", [(0, 2), (300, 302), (900, 901)])
def test_few_kinds_are_evaluated_instead_of_many_rows(apart: int, asked: int) -> None:
    totals, counting = Totals(1000), Counting()
    for row in range(900):
        totals.offer(row, NODES[1])
    for row in range(apart):
        totals.add(row, Charge(((CPU, row + 1),), (0, 0)))
    totals.kernel = lambda: counting
    totals.evaluated(TERMS[0], np.arange(1000))
    base, codes, by_code = np.zeros(1000, np.int32), np.zeros(990, np.uint8), np.zeros(256, np.int32)
    totals.rank(AmountRanks((), ()), base, codes, by_code, np.zeros(990, np.int32))
    assert counting.asked == [asked, asked]


def test_every_row_may_be_of_a_kind_of_its_own() -> None:
    totals = Totals(ROWS)
    alike = AlikeRows(totals)
    for round in range(3):
        for row in range(ROWS):
            totals.add(row, Charge(((CPU, row + round + 1),), (0, 0)))
        alike.refresh()
        assert len(set(alike.of_row.tolist())) == ROWS
        assert (alike.requested[..., alike.of_row] == totals.requested).all()


def test_kinds_are_found_again_after_more_changes_than_the_log_remembers() -> None:
    totals = Totals(ROWS)
    alike = AlikeRows(totals)
    alike.refresh()
    totals.offer(5, NODES[0])
    for _ in range(LENGTH // 2 + 1):
        totals.add(0, CHARGES[0])
        totals.subtract(0, CHARGES[0])
    alike.refresh()
    assert (alike.allocatable[..., alike.of_row] == totals.allocatable).all()
