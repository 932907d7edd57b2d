"""Reports that were longer on their way than others: what they say of their pods outweighs how many there were."""

from __future__ import annotations

import pytest

from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.podrecord import PATIENT, SURE
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import NODE

A = words.pod("a")
kinds = pytest.mark.parametrize("exclusive", [False, True], ids=["all pods", "exclusive ones"])


def running(exclusive: bool) -> Ledger:
    """A node whose fingerprints are known; pod a has gone to zone 0 and runs."""
    ledger = words.ledger()
    ledger.report(words.signed((8, 8), exclusive_only=exclusive))
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    return ledger


@kinds
def test_a_running_pod_is_not_covered_by_reports_of_other_pods_however_many(exclusive: bool) -> None:
    ledger = running(exclusive)
    for number in range(PATIENT - 1):
        ledger.report(words.signed((8, 8 - number % 2), exclusive_only=exclusive))
        assert words.free(ledger)[0] == 6
    ledger.report(words.signed((6, 8), "a", exclusive_only=exclusive))
    assert words.free(ledger) == [6, 8]


@kinds
def test_a_fingerprint_of_unknown_pods_confirms_no_pod_for_a_while(exclusive: bool) -> None:
    ledger = running(exclusive)
    for number in range(PATIENT - 1):
        ledger.report(words.signed((6, 8 - number % 2), "x", exclusive_only=exclusive))
        assert words.bounds(ledger)[0] == (4, 6)
    ledger.report(words.signed((6, 7), "x", exclusive_only=exclusive))
    assert words.bounds(ledger)[0] == (6, 6)


@kinds
def test_where_fingerprints_never_are_of_known_pods_age_decides(exclusive: bool) -> None:
    ledger = words.ledger()
    ledger.report(words.signed((8, 8), "x", exclusive_only=exclusive))
    ledger.predict(NODE, A, words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    for number in range(SURE):
        ledger.report(words.signed((6, 8 - number % 2), "x", exclusive_only=exclusive))
    assert words.bounds(ledger)[0] == (6, 6)


def test_a_pod_that_came_and_went_may_still_be_in_the_next_report() -> None:
    """The one that does not have it was made before its time."""
    ledger = running(exclusive=False)
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.signed((8, 7)))
    ledger.report(words.signed((6, 8), "a"))
    assert words.free(ledger) == [8, 8]


def test_one_that_a_report_had_and_the_next_has_not_is_done_with() -> None:
    ledger = running(exclusive=False)
    ledger.report(words.signed((6, 8), "a"))
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.signed((8, 8)))
    assert [book.records for book in ledger.nodes()] == [{}]
