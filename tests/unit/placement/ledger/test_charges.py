"""What one pod changes on its node: by whether it lives and whether the report covers it."""

from __future__ import annotations

import pytest

from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.ledger import charges
from numalign.placement.ledger.charges import HOMELESS, Cover, PodCharges, PodLife
from tests.unit.placement import ledgerwords as words

LIVE, LINGERING, ENDED = PodLife
NO, YES, DOUBT = Cover
POD = words.pod("a")
HELD = (Entry(CPU, 2, 0b01),)
MAYBE = (Entry(CPU, 2, 0b01, certain=False),)
TAKEN, GIVEN_BACK = (((CPU, 0), -2),), (((CPU, 0), 2),)

CASES = {
    "a new pod is charged": (LIVE, NO, PodCharges(exact=TAKEN)),
    "a covered pod is in the report": (LIVE, YES, PodCharges(explained=HELD)),
    "a pod in doubt may be charged twice": (LIVE, DOUBT, PodCharges(charged=MAYBE, explained=HELD)),
    "a covered pod that ended is given back": (ENDED, YES, PodCharges(exact=GIVEN_BACK, explained=HELD)),
    "an ended pod that no report had changes nothing": (ENDED, NO, PodCharges()),
    "an ended pod in doubt may be given back": (ENDED, DOUBT, PodCharges(doubtful=HELD, explained=HELD)),
    "a pod that lingers may still be there": (LINGERING, NO, PodCharges(charged=MAYBE)),
    "a covered one may have left": (LINGERING, YES, PodCharges(doubtful=HELD, explained=HELD)),
}


@pytest.mark.parametrize("life, cover, expected", CASES.values(), ids=CASES)
def test_a_pod_that_holds_exact_amounts(life: PodLife, cover: Cover, expected: PodCharges) -> None:
    assert charges.share(words.holding(POD, HELD), (), life, cover) == expected


def test_what_a_report_hides_is_charged_although_it_covers_the_pod() -> None:
    hidden = (Entry(CPU, 1, 0b01),)
    found = charges.share(words.holding(POD, HELD), hidden, LIVE, YES)
    assert found == PodCharges(exact=(((CPU, 0), -1),), explained=HELD + hidden)


ENTRIES = {
    "one zone": (Entry(CPU, 2, 0b10), PodCharges(exact=(((CPU, 1), -2),))),
    "no zone": (Entry(2, 1, 0), PodCharges(exact=(((2, HOMELESS), -1),))),
    "several zones": (Entry(CPU, 2, 0b11), PodCharges(charged=(Entry(CPU, 2, 0b11),))),
    "not certain": (Entry(CPU, 2, 0b01, certain=False), PodCharges(charged=(Entry(CPU, 2, 0b01, certain=False),))),
    "a block of memory in two zones": (
        Entry(MEMORY, 4, 0b11, span=2),
        PodCharges(blocks=(Entry(MEMORY, 4, 0b11, span=2),)),
    ),
    "memory in one of two zones": (
        Entry(MEMORY, 4, 0b11, span=1),
        PodCharges(charged=(Entry(MEMORY, 4, 0b11, span=1),)),
    ),
}


@pytest.mark.parametrize("entry, expected", ENTRIES.values(), ids=ENTRIES)
def test_how_an_entry_is_charged(entry: Entry, expected: PodCharges) -> None:
    assert charges.share(words.holding(POD, (entry,)), (), LIVE, NO) == expected


def test_of_what_is_given_back_only_exact_amounts_and_blocks_are_certain() -> None:
    block, spread = Entry(MEMORY, 4, 0b11, span=2), Entry(CPU, 2, 0b11)
    found = charges.share(words.holding(POD, (*HELD, block, spread)), (), ENDED, YES)
    assert (found.exact, found.returned, found.doubtful) == (GIVEN_BACK, (block,), (spread,))


def test_replicas_that_hold_the_same_share_their_charges() -> None:
    one, other = (words.holding(words.pod(name), HELD) for name in ("a", "b"))
    assert charges.share(one, (), LIVE, NO) is charges.share(other, (), LIVE, NO)
