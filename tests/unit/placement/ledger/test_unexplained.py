"""A report covers pods that the ledger does not have: what they held may be free by now."""

from __future__ import annotations

import pytest

from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.podrecord import SURE
from tests.unit.placement import ledgerwords as words

GONE, HERE = words.pod("gone", 4), words.pod("here")
PLACED = words.placed(HERE, 1, first=4), words.placed(GONE, 0, 4)


def started(report: RowFacts) -> Ledger:
    """A process that starts: one pod runs on the node, another one has ended and left no object."""
    ledger = words.ledger()
    ledger.report(report)
    ledger.seen(words.running(HERE), 1.0)
    return ledger


FIRST = {
    "lists it": (words.agent((4, 6), *PLACED), [(4, 8), (6, 6)]),
    "lists it by name": (words.agent((4, 6), PLACED[0], words.placed(GONE, 0, 4, uid="")), [(4, 8), (6, 6)]),
    "has its fingerprint": (words.signed((4, 6), "gone", "here"), [(4, 8), (6, 8)]),
    "has only what is known": (words.agent((8, 6), PLACED[0]), [(8, 8), (6, 6)]),
    "has the fingerprint of what is known": (words.signed((8, 6), "here"), [(8, 8), (6, 6)]),
    "says nothing of pods": (words.facts((4, 6)), [(4, 4), (6, 6)]),
}


@pytest.mark.parametrize("report, bounds", FIRST.values(), ids=FIRST)
def test_a_pod_that_ended_before_the_start_may_have_left_its_place_if_the_report(
    report: RowFacts, bounds: list[tuple[int, int]]
) -> None:
    assert words.bounds(started(report)) == bounds


def test_a_report_without_it_ends_the_doubt() -> None:
    ledger = started(words.agent((4, 6), *PLACED))
    ledger.report(words.agent((8, 6), PLACED[0]))
    assert words.free(ledger) == [8, 6]


@pytest.mark.parametrize(
    "report", [words.agent((4, 6), *PLACED), words.signed((4, 6), "gone", "here")], ids=["listed", "signed"]
)
def test_who_is_still_in_the_report_after_the_next_is_there(report: RowFacts) -> None:
    ledger = started(report)
    for number in range(SURE):
        assert words.bounds(ledger)[0] == (4, 8)
        free = 4, 5 + number
        ledger.report(words.agent(free, *PLACED) if report.placements else words.signed(free, "x"))
    assert words.bounds(ledger)[0] == (4, 4)


def test_who_turns_up_after_all_is_no_stranger() -> None:
    ledger = started(words.agent((4, 6), *PLACED))
    ledger.seen(words.running(GONE), 2.0)
    assert words.free(ledger) == [4, 6]
