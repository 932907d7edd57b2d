"""A report's amounts account for some pods; which ones is found out from what the report gives away."""

from __future__ import annotations

import pytest

from numalign.placement.columns.holdings import Entry, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import CPU
from numalign.placement.ledger.ledger import Ledger
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import NODE

A, B, C = words.pod("a"), words.pod("b", 4), words.pod("c", 1)


def with_two_pending() -> Ledger:
    """An idle node; pod a goes to zone 0 and b to zone 1, 2 and 4 CPUs."""
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.predict(NODE, B, words.held(B, 1, 4))
    return ledger


REPORTS: dict[str, tuple[RowFacts, list[tuple[int, int]]]] = {
    "names both": (words.agent((6, 4), words.placed(A, 0), words.placed(B, 1, 4)), [(6, 6), (4, 4)]),
    "names one": (words.agent((8, 4), words.placed(B, 1, 4)), [(6, 6), (4, 4)]),
    "names none": (words.agent((8, 8)), [(6, 6), (4, 4)]),
    "names one without its uid": (words.agent((6, 8), words.placed(A, 0, uid="")), [(6, 6), (4, 4)]),
    "names one of that name, with another uid": (words.agent((6, 8), words.placed(A, 0, uid="x")), [(4, 6), (4, 4)]),
    "signs both": (words.signed((6, 4), "a", "b"), [(6, 6), (4, 4)]),
    "signs the first": (words.signed((6, 8), "a"), [(6, 6), (4, 4)]),
    "signs none": (words.signed((8, 8)), [(6, 6), (4, 4)]),
    "signs both as exclusive": (words.signed((6, 4), "a", "b", exclusive_only=True), [(6, 6), (4, 4)]),
    "signs strangers, amounts of both": (words.signed((6, 4), "x"), [(4, 8), (0, 8)]),
    "signs nothing, amounts of both": (words.facts((6, 4)), [(6, 6), (4, 4)]),
    "signs nothing, amounts of neither": (words.facts((8, 8)), [(6, 6), (4, 4)]),
    "signs nothing, amounts of the smaller": (words.facts((6, 8)), [(6, 6), (4, 4)]),
    "signs nothing, amounts of either": (words.facts((8, 4)), [(6, 8), (0, 4)]),
}


@pytest.mark.parametrize("report, left", REPORTS.values(), ids=REPORTS)
def test_pods_that_a_report_does_not_cover_are_charged_on_top(report: RowFacts, left: list[tuple[int, int]]) -> None:
    ledger = with_two_pending()
    ledger.report(report)
    assert words.bounds(ledger) == left


def test_pods_without_exclusive_resources_take_no_part_in_the_exclusive_fingerprint() -> None:
    shared = words.pod("shared", 0)
    ledger = words.ledger(lambda pod, row: [words.holding(pod, [])])
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(shared, 1.0)
    ledger.report(words.signed((6, 8), "a", exclusive_only=True))
    assert words.free(ledger) == [6, 8]


def test_a_covered_pod_stays_covered() -> None:
    ledger = with_two_pending()
    ledger.report(words.signed((6, 4), "a", "b"))
    ledger.report(words.signed((6, 4), "x", "y"))
    assert words.free(ledger) == [6, 4]


def test_a_pod_seen_to_run_is_covered_by_the_report_after_the_next() -> None:
    ledger = with_two_pending()
    ledger.seen(words.running(A), 1.0)
    ledger.report(words.facts((5, 7)))
    assert words.bounds(ledger)[0] == (3, 5)
    ledger.report(words.facts((5, 8)))
    assert words.bounds(ledger)[0] == (5, 5)


def test_a_report_that_repeats_itself_is_no_later_look() -> None:
    ledger = with_two_pending()
    ledger.seen(words.running(A), 1.0)
    for _ in range(5):
        ledger.report(words.facts((5, 7)))
    assert words.bounds(ledger)[0] == (3, 5)


def test_a_report_that_is_read_again_is_no_later_look() -> None:
    ledger = with_two_pending()
    ledger.seen(words.running(A), 1.0)
    ledger.report(words.facts((5, 7)))
    ledger.report(words.facts((5, 6)), again=True)
    assert words.bounds(ledger)[0] == (3, 5)


def test_what_we_bind_after_a_report_is_not_in_it() -> None:
    ledger = words.ledger()
    ledger.report(words.facts((4, 4)))
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(words.running(words.pod("foreign", 3)), 1.0)
    assert words.bounds(ledger) == [(2, 2), (4, 4)]


@pytest.mark.parametrize("report", [words.facts((6, 4)), words.signed((6, 4), "x")], ids=["unsigned", "signs others"])
def test_pods_found_at_the_start_are_covered_if_the_amounts_say_so(report: RowFacts) -> None:
    ledger = words.ledger()
    for pod in (A, B):
        ledger.seen(words.running(pod), 1.0)
    ledger.report(report)
    assert words.free(ledger) == [6, 4]


def test_a_report_may_be_known_before_its_pods() -> None:
    ledger = words.ledger()
    ledger.report(words.signed((6, 4), "a", "b"))
    for pod in (B, A):
        ledger.seen(words.running(pod), 1.0)
    assert words.free(ledger) == [6, 4]


def test_a_pod_that_comes_after_the_report_that_names_it_is_observed() -> None:
    ledger = words.ledger()
    ledger.report(words.agent((8, 4), words.placed(B, 1, 4)))
    ledger.seen(B, 1.0)
    assert words.free(ledger) == [8, 4]
    found = ledger.holding("uid-b")
    assert found is not None
    assert (found.source, found.entries) == (Source.OBSERVED, (Entry(CPU, 4, 0b10),))


def test_pods_signed_in_another_order_than_bound_are_found_once_they_run() -> None:
    ledger = with_two_pending()
    ledger.seen(words.running(B), 1.0)
    ledger.report(words.signed((8, 4), "b"))
    assert words.free(ledger) == [6, 4]


def test_finished_pods_that_old_kubelets_list_do_not_spoil_the_fingerprint() -> None:
    ledger = with_two_pending()
    ledger.seen(words.finished(words.pod("done")), 1.0)
    ledger.report(words.signed((6, 4), "a", "b", "done", minor=(1, 33)))
    assert words.free(ledger) == [6, 4]


MINORS = {"names those that hold nothing": ((1, 33), (6, 8)), "names those that run": ((1, 34), (8, 8))}


@pytest.mark.parametrize("minor, left", MINORS.values(), ids=MINORS)
def test_a_finished_pod_may_be_in_a_report_that(minor: tuple[int, int], left: tuple[int, int]) -> None:
    ledger = with_two_pending()
    ledger.seen(words.finished(A), 1.0)
    ledger.report(words.signed((6, 8), "a", minor=minor))
    assert words.bounds(ledger)[0] == left


def test_a_finished_pod_leaves_the_fingerprint_with_its_object() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.seen(words.finished(words.pod("done")), 1.0)
    ledger.gone(words.finished(words.pod("done")), 2.0)
    assert [dict(book.remains) for book in ledger.nodes()] == [{}]


def test_a_pod_made_again_under_its_name_is_charged_until_the_report_is_surely_about_it() -> None:
    old, new = words.pod("web-0", uid="old"), words.pod("web-0", 4, uid="new")
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, old, words.held(old, 0))
    ledger.report(words.signed((6, 8), "web-0"))
    ledger.seen(words.finished(old), 1.0)
    ledger.predict(NODE, new, words.held(new, 0, 4))
    ledger.seen(words.running(new), 2.0)
    ledger.report(words.signed((4, 8), "web-0"))
    assert words.bounds(ledger) == [(0, 6), (8, 8)]
    ledger.report(words.signed((4, 7), "web-0"))
    assert words.bounds(ledger) == [(4, 4), (7, 7)]


def test_namesakes_that_a_report_names_without_uid_are_both_in_doubt() -> None:
    old, new = words.pod("web-0", uid="old"), words.pod("web-0", 4, uid="new")
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, old, words.held(old, 0))
    ledger.report(words.agent((6, 8), words.placed(old, 0)))
    ledger.seen(words.finished(old), 1.0)
    ledger.predict(NODE, new, words.held(new, 0, 4))
    ledger.report(words.agent((6, 8), words.placed(old, 0, uid="")))
    assert words.bounds(ledger) == [(2, 8), (8, 8)]


def test_many_pending_pods_are_tried_within_a_limit() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    pods = [words.pod(f"p{number}", 0) for number in range(300)]
    for pod in pods:
        ledger.predict(NODE, pod, words.holding(pod, []))
    ledger.report(words.signed((8, 8), "stranger"))
    assert words.free(ledger) == [8, 8]
