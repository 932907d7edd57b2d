"""One node's ledger: reports taken in, sums kept, and the row that follows."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.columns.holdings import Entry, Holding
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import CPU, MEMORY, Resources
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.nodeledger import NodeLedger, Row, UnexplainedSpots, UnknownPods
from numalign.placement.ledger.podrecord import SURE, PodRecord
from tests import ledgers
from tests.unit.placement import ledgerwords as words

UNKNOWN = {"uid-x": (Entry(CPU, 2, 0b01), Entry(2, 1, 0))}


def record(name: str, held: Holding | None = None, **more: Any) -> PodRecord:
    pod = words.pod(name)
    holding = held or words.held(pod, 0)
    return PodRecord(uid=pod.metadata.uid, name=pod.metadata.full_name, order=1, pod=pod, holding=holding, **more)


def node(report: RowFacts, *records: PodRecord) -> NodeLedger:
    made = NodeLedger(words.NODE)
    made.take(report)
    for each in records:
        made.put(each)
    return made


def row(made: NodeLedger) -> Row:
    found = made.row(Resources())
    assert found is not None
    return found


def cpus(amounts: list[int], found: Row) -> list[int]:
    return amounts[CPU :: found.width]


# Reports


def test_a_report_that_repeats_the_one_before_is_not_counted() -> None:
    made = node(words.facts((8, 8)))
    made.take(words.facts((8, 8)))
    assert made.report_count == 1
    made.take(words.facts((7, 8)))
    assert made.report_count == 2


def test_a_report_that_names_its_pods_counts_each_time() -> None:
    made = node(words.agent((8, 8)))
    made.take(words.agent((8, 8)))
    assert made.report_count == 2


def test_the_same_report_read_again_is_not_counted() -> None:
    made = node(words.agent((8, 8)))
    made.take(words.agent((8, 8)), again=True)
    assert made.report_count == 1


def test_entries_follow_their_zone_to_its_new_position() -> None:
    made = node(words.facts((8, 8), (0, 1)), record("a", words.held(words.pod("a"), 1)))
    assert made.take(words.facts((8, 8), (1, 2))) == 0
    holding = made.records["uid-a"].holding
    assert holding is not None
    assert holding.entries == (Entry(CPU, 2, 0b01),)


def test_entries_in_a_zone_that_vanished_are_counted_and_charged_no_more() -> None:
    made = node(words.facts((8, 8), (0, 1)), record("a"))
    assert made.take(words.facts((8,), (1,))) == 1
    assert cpus(row(made).free, row(made)) == [8]


# Rows


def test_a_pending_pod_is_charged_to_what_is_free_and_not_to_what_is_settled() -> None:
    found = row(node(words.facts((8, 8)), record("a")))
    assert (cpus(found.free, found), cpus(found.settled, found)) == ([6, 8], [8, 8])
    assert [each.uid for each in found.pending] == ["uid-a"]


def test_a_pod_that_was_seen_to_run_is_charged_to_both() -> None:
    found = row(node(words.facts((8, 8)), record("a", started=0)))
    assert (cpus(found.free, found), found.settled is found.free, found.pending) == ([6, 8], True, ())


def test_no_more_comes_free_than_the_node_has() -> None:
    gone = record("a", life=PodLife.ENDED, cover=Cover.YES)
    found = row(node(words.facts((7, 8)), gone))
    assert cpus(found.free, found) == [8, 8]


def test_what_may_have_come_free_is_free_at_most() -> None:
    found = row(node(words.facts((6, 8)), record("a", life=PodLife.ENDED, cover=Cover.DOUBT)))
    assert cpus(found.free, found) == [8, 8]
    assert found.entries == (Entry(CPU, 2, 0b01, certain=False),)


def test_a_block_of_two_zones_is_taken_from_the_first_that_have_it() -> None:
    gib = words.GIB
    pod = words.pod("a")
    block = words.holding(pod, (Entry(MEMORY, 10 * gib, 0b11, span=2),))
    found = row(node(words.with_memory((8, 8), (8, 8), policy="restricted"), record("a", block)))
    assert [amount // gib for amount in found.free[MEMORY :: found.width]] == [0, 6]


@pytest.mark.parametrize("strike", [False, True])
def test_sums_are_those_of_all_records(strike: bool) -> None:
    made = node(words.facts((8, 8)), record("a"), record("b", started=0), record("c", cover=Cover.DOUBT))
    made.records["uid-a"].start(1, order=2)
    made.put(made.records["uid-a"])
    if strike:
        made.strike("uid-b")
    assert made.sums == ledgers.recomputed(made)


# Pods


def test_a_pod_that_is_found_is_to_be_judged_and_placed() -> None:
    made = node(words.facts((8, 8)))
    made.find(record("a"))
    assert (made.unjudged, list(made.unplaced)) == (True, ["uid-a"])
    made.cover(made.records["uid-a"], Cover.YES)
    assert (made.records["uid-a"].reported, made.unplaced) == (True, {})


@pytest.mark.parametrize("is_exact, expected", [(False, Cover.DOUBT), (True, Cover.YES)])
def test_an_end_makes_cover_doubtful_unless_the_report_says_exactly_which_pods_it_has(
    is_exact: bool, expected: Cover
) -> None:
    made = node(words.facts((8, 8)), record("a", cover=Cover.YES))
    made.judged(is_exact=is_exact)
    made.doubt(made.records["uid-a"])
    assert (made.records["uid-a"].cover, made.unjudged) == (expected, not is_exact)


# What reports do not explain


def test_amounts_of_unknown_pods_are_perhaps_free_for_two_reports() -> None:
    unknown, seen = UnknownPods(), []
    for report in range(1, SURE + 2):
        unknown.note(UNKNOWN, report)
        seen.append(unknown.perhaps_free)
    assert seen == [(Entry(CPU, 2, 0b01),)] * SURE + [()]


def test_an_unknown_pod_that_comes_back_is_new() -> None:
    unknown = UnknownPods()
    for report, found in enumerate([UNKNOWN, UNKNOWN, {}, UNKNOWN]):
        unknown.note(found, report)
    assert unknown.perhaps_free == (Entry(CPU, 2, 0b01),)


SHORT = {
    "at once, if the pods are known": ([0b01], True, [0b01]),
    "the second time, if not": ([0b01, 0b01], False, [0, 0b01]),
    "once while it lasts": ([0b01, 0b01, 0b01], True, [0b01, 0, 0]),
    "again after it was gone": ([0b01, 0, 0b01], True, [0b01, 0, 0b01]),
    "each spot by itself": ([0b01, 0b11, 0b11], False, [0, 0b01, 0b10]),
}


@pytest.mark.parametrize("reports, sure, expected", SHORT.values(), ids=SHORT)
def test_a_shortfall_is_counted(reports: list[int], sure: bool, expected: list[int]) -> None:
    spots = UnexplainedSpots()
    assert [spots.note(short, sure=sure) for short in reports] == expected
