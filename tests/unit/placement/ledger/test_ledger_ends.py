"""Pods end in many ways; their zones come free when the node surely has them back, and not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.ledger.divergences import NOTHING, Change, DivergenceKind
from numalign.placement.ledger.ledger import Ledger
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import NODE

A = words.pod("a", termination_grace_period_seconds=30)


def with_pod(*, covered: bool) -> Ledger:
    """Pod a holds 2 CPUs of zone 0, in a report or not yet."""
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    if covered:
        ledger.report(words.agent((6, 8), words.placed(A, 0)))
    return ledger


ENDS: dict[str, Callable[[Ledger], Change]] = {
    "succeeds": lambda ledger: ledger.seen(words.finished(A), 2.0),
    "fails": lambda ledger: ledger.seen(words.finished(A, "Failed"), 2.0),
    "is deleted with all containers terminated": lambda ledger: ledger.gone(words.terminated(A), 2.0),
    "is deleted after it has finished": lambda ledger: ledger.gone(words.finished(A), 2.0),
}


@pytest.mark.parametrize("covered", [True, False], ids=["covered", "not covered"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_its_zones_are_free_at_once_when_a_pod(end: Callable[[Ledger], Change], covered: bool) -> None:
    ledger = with_pod(covered=covered)
    assert end(ledger).freed == (NODE,)
    assert words.free(ledger) == [8, 8]


@pytest.mark.parametrize("covered", [True, False], ids=["covered", "not covered"])
def test_a_pod_deleted_while_it_runs_stays_charged_for_its_grace_period_and_ten_seconds(covered: bool) -> None:
    ledger = with_pod(covered=covered)
    assert ledger.gone(words.running(A), 100.0) == Change((NODE,))
    assert ledger.tick(139.9) == NOTHING
    assert words.bounds(ledger) == [(6, 8), (8, 8)]
    assert ledger.tick(140.0).freed == (NODE,)
    assert words.free(ledger) == [8, 8]


GRACE = {
    "its own": (A, 40.0),
    "that of its deletion": (words.pod("a", metadata={"deletion_grace_period_seconds": 5}), 15.0),
    "none": (words.pod("a", metadata={"deletion_grace_period_seconds": 0}), 10.0),
    "an absurd one": (words.pod("a", termination_grace_period_seconds=-7), 10.0),
}


@pytest.mark.parametrize("pod, seconds", GRACE.values(), ids=GRACE)
def test_the_grace_period_is(pod: Pod, seconds: float) -> None:
    ledger = with_pod(covered=False)
    ledger.gone(words.running(pod), 0.0)
    assert ledger.tick(seconds - 0.1) == NOTHING
    assert ledger.tick(seconds).freed == (NODE,)


def test_a_report_that_omits_a_deleted_pod_does_not_end_its_charge() -> None:
    ledger = with_pod(covered=True)
    ledger.gone(words.running(A), 100.0)
    ledger.report(words.agent((8, 8)))
    assert words.bounds(ledger) == [(6, 8), (8, 8)]
    ledger.tick(140.0)
    assert words.free(ledger) == [8, 8]


def test_word_of_the_end_ends_the_charge_of_a_deleted_pod() -> None:
    ledger = with_pod(covered=True)
    ledger.gone(words.running(A), 100.0)
    assert ledger.gone(words.terminated(A), 101.0).freed == (NODE,)
    assert (words.free(ledger), ledger.tick(140.0)) == ([8, 8], NOTHING)


def test_a_repeated_deletion_does_not_last_longer() -> None:
    ledger = with_pod(covered=False)
    ledger.gone(words.running(A), 100.0)
    assert ledger.gone(words.running(A), 120.0) == NOTHING
    assert ledger.tick(140.0).freed == (NODE,)


def test_a_decision_whose_pod_is_deleted_before_it_was_bound_frees_at_once() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    assert ledger.gone(words.pod("a", node=""), 1.0).freed == (NODE,)
    assert words.free(ledger) == [8, 8]


def test_a_late_word_about_a_pod_that_ended_is_ignored() -> None:
    ledger = with_pod(covered=False)
    ledger.seen(words.finished(A), 2.0)
    assert ledger.seen(words.running(A), 3.0) == NOTHING
    assert words.free(ledger) == [8, 8]


def test_a_deletion_may_come_before_the_pod() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    assert ledger.gone(words.running(A), 1.0) == NOTHING
    assert ledger.seen(words.running(A), 2.0) == NOTHING
    assert words.free(ledger) == [8, 8]


def test_pods_that_ended_are_remembered_for_ten_minutes() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.gone(words.running(A), 0.0)
    ledger.tick(600.0)
    assert ledger.seen(words.running(A), 601.0).rows == (NODE,)


def test_what_is_given_back_ends_with_the_report_that_has_it_free() -> None:
    ledger = with_pod(covered=True)
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.agent((8, 8)))
    assert words.free(ledger) == [8, 8]
    assert all(not book.records for book in ledger.nodes())


def test_a_late_report_still_includes_a_pod_that_ended() -> None:
    ledger = with_pod(covered=False)
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.agent((6, 8), words.placed(A, 0)))
    assert words.free(ledger) == [8, 8]


LATE = {
    "it is in": ("signed", (6, 8), ["a"], [(8, 8), (8, 8)]),
    "it is out": ("signed", (8, 8), [], [(8, 8), (8, 8)]),
    "amounts say that it is in": ("facts", (6, 8), [], [(8, 8), (8, 8)]),
    "amounts say that it is out": ("facts", (7, 8), [], [(7, 7), (8, 8)]),
}


@pytest.mark.parametrize("kind, left, names, bounds", LATE.values(), ids=LATE)
def test_a_report_after_the_end_of_a_pod_is_weighed(
    kind: str, left: tuple[int, int], names: list[str], bounds: list[tuple[int, int]]
) -> None:
    ledger = with_pod(covered=True)
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.signed(left, *names) if kind == "signed" else words.facts(left))
    assert words.bounds(ledger) == bounds


def test_a_pod_that_was_deleted_first_left_the_reports_first() -> None:
    other = words.pod("b")
    ledger = with_pod(covered=True)
    ledger.predict(NODE, other, words.held(other, 1))
    ledger.gone(words.running(A), 100.0)
    ledger.seen(words.finished(other), 101.0)
    ledger.tick(140.0)
    ledger.report(words.signed((8, 6), "b"))
    assert words.free(ledger) == [8, 8]


def test_an_end_in_doubt_is_settled_by_the_report_after_the_next() -> None:
    other = words.pod("b")
    ledger = with_pod(covered=True)
    ledger.predict(NODE, other, words.held(other, 0))
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.facts((6, 8)))
    assert words.bounds(ledger)[0] == (4, 8)
    ledger.report(words.facts((6, 7)))
    assert words.bounds(ledger)[0] == (6, 6)


def test_the_end_of_a_pod_may_be_in_a_report_before_the_watch_shows_it() -> None:
    other = words.pod("b")
    ledger = with_pod(covered=True)
    ledger.seen(words.running(other), 2.0)
    ledger.report(words.signed((8, 6), "b"))
    ledger.seen(words.finished(A), 3.0)
    assert words.bounds(ledger) == [(8, 8), (6, 6)]


def test_cpus_of_several_zones_may_have_come_back_to_any_of_them() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.holding(A, [Entry(CPU, 2, 0b11)]))
    ledger.report(words.signed((7, 7), "a"))
    ledger.seen(words.finished(A), 2.0)
    assert words.bounds(ledger) == [(7, 8), (7, 8)]


def test_memory_of_a_group_comes_back_to_the_group() -> None:
    ledger = words.ledger()
    ledger.report(words.with_memory((8, 8), (8, 8), policy="restricted"))
    ledger.predict(NODE, A, words.holding(A, [Entry(MEMORY, 10 * words.GIB, 0b11, span=2)]))
    row = ledger.row(NODE)
    assert row is not None
    assert (row.entries, row.groups and row.groups.cells) == ((), (0b11, 0b11))
    assert [amount // words.GIB for amount in words.by_zone(row, MEMORY)] == [0, 6]
    ledger.seen(words.finished(A), 2.0)
    assert words.free(ledger, column=MEMORY) == [8 * words.GIB] * 2


REFUSALS = {
    "TopologyAffinityError": [DivergenceKind.REFUSED],
    "SMTAlignmentError": [DivergenceKind.REFUSED],
    "Evicted": [],
}


@pytest.mark.parametrize("reason, kinds", REFUSALS.items(), ids=REFUSALS)
def test_a_kubelet_that_refuses_a_predicted_pod_is_counted(reason: str, kinds: list[DivergenceKind]) -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    change = ledger.seen(words.finished(A, "Failed", reason), 1.0)
    assert [each.kind for each in change.divergences] == list(ledger.divergences.counts) == kinds


def interchangeable() -> tuple[Ledger, Pod, Pod]:
    """Pods b and c of one shape, one in each zone: which one in which is open."""
    ledger, one, other = words.ledger(), words.pod("b"), words.pod("c")
    ledger.report(words.facts())
    ledger.predict(NODE, one, words.held(one, 0, shape=3, interchangeable=True))
    ledger.predict(NODE, other, words.held(other, 1, shape=3, interchangeable=True))
    return ledger, one, other


def test_pods_that_may_sit_in_each_others_places_are_exact_together() -> None:
    ledger, _, _ = interchangeable()
    assert words.free(ledger) == [6, 6]


def test_when_one_of_them_ends_the_other_may_have_either_place() -> None:
    ledger, one, _ = interchangeable()
    ledger.seen(words.finished(one), 1.0)
    assert words.bounds(ledger) == [(6, 8), (6, 8)]


def test_when_a_report_covers_one_of_them_the_other_may_have_either_place() -> None:
    ledger, _, _ = interchangeable()
    ledger.report(words.signed((6, 8), "b"))
    assert words.bounds(ledger) == [(4, 6), (6, 8)]


def test_when_one_of_them_is_seen_in_the_others_place_nothing_was_wrong() -> None:
    ledger, one, other = interchangeable()
    change = ledger.report(words.agent((6, 6), words.placed(one, 1), words.placed(other, 0)))
    assert (change.divergences, words.free(ledger)) == ((), [6, 6])


def test_a_pod_that_came_and_went_unreported_is_forgotten_after_a_while() -> None:
    """A publisher that skips what it has said already need not say anything for long."""
    ledger = words.ledger()
    ledger.report(words.agent((8, 8)))
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(words.finished(A), 100.0)
    ledger.report(words.agent((8, 8)))
    ledger.tick(699.0)
    assert [record.uid for book in ledger.nodes() for record in book.records.values()] == ["uid-a"]
    ledger.tick(700.0)
    assert [record.uid for book in ledger.nodes() for record in book.records.values()] == []
