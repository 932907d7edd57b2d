"""A report that names its pods replaces what was predicted, except what it cannot show."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.api.attributes.podplacements import HeldDevices, MemoryBlock, PodPlacement
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts, Supply
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.ledger.divergences import Divergence, DivergenceKind, Problem
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.podrecord import STUBBORN
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import GIB, NIC, NODE

A = words.pod("a")


def predicted(holding: Holding, pod: Pod = A, report: RowFacts | None = None) -> Ledger:
    ledger = words.ledger()
    ledger.report(report or words.facts())
    ledger.predict(NODE, pod, holding)
    return ledger


def test_an_observation_corrects_a_prediction_and_counts_a_divergence() -> None:
    ledger = predicted(words.held(A, 0))
    change = ledger.report(words.agent((8, 6), words.placed(A, 1)))
    wrong = Divergence(
        kind=DivergenceKind.ZONES, node=NODE, pod="default/a", container="app", predicted=((0,),), observed=(1,)
    )
    assert (change.divergences, list(ledger.divergences.latest)) == ((wrong,), [wrong])
    assert words.free(ledger) == [8, 6]


POSSIBLE = {
    "as predicted": (words.held(A, 0), words.placed(A, 0), []),
    "in one of the possible zones": (
        words.holding(A, [Entry(CPU, 2, 0b11)], containers=(ContainerZones("app", (1, 2)),)),
        words.placed(A, 1),
        [],
    ),
    "less than predicted": (words.held(A, 0, 4), words.placed(A, 0), []),
    "more than predicted": (words.held(A, 0, 1), words.placed(A, 0), [DivergenceKind.AMOUNT]),
    "elsewhere": (words.held(A, 1), words.placed(A, 0), [DivergenceKind.ZONES]),
    "of unknown place": (
        words.holding(A, [Entry(CPU, 2, 0b10)], source=Source.UNKNOWN),
        words.placed(A, 0),
        [],
    ),
}


@pytest.mark.parametrize("holding, placement, kinds", POSSIBLE.values(), ids=POSSIBLE)
def test_divergences_of_a_pod(holding: Holding, placement: PodPlacement, kinds: list[DivergenceKind]) -> None:
    change = predicted(holding).report(words.agent((6, 8), placement))
    assert [each.kind for each in change.divergences] == kinds


def test_a_pod_that_its_kubelet_lists_before_it_allocates_stays_charged() -> None:
    ledger = predicted(words.held(A, 0))
    nothing = structs.replace(words.placed(A, 0), holdings=())
    assert ledger.report(words.agent((8, 8), nothing)).divergences == ()
    assert words.free(ledger) == [6, 8]
    ledger.report(words.agent((6, 8), words.placed(A, 0)))
    assert words.free(ledger) == [6, 8]
    ledger.report(words.agent((8, 8), nothing))
    assert words.free(ledger) == [8, 8], "it was observed, so this is an observation, too"


def test_the_same_observation_again_counts_nothing() -> None:
    ledger = predicted(words.held(A, 0))
    ledger.report(words.agent((8, 6), words.placed(A, 1)))
    assert ledger.report(words.agent((8, 6), words.placed(A, 1))).divergences == ()


def test_cpus_without_a_core_map_lie_somewhere() -> None:
    ledger = predicted(words.held(A, 0))
    ledger.report(words.agent((6, 8), words.placed(A, 0), zone_cpus=()))
    found = ledger.holding("uid-a")
    assert found is not None
    assert found.entries == (Entry(CPU, 2, 0b11),)


def test_memory_and_devices_are_observed_by_real_zone_ids() -> None:
    blocks = (MemoryBlock(type="memory", zones=1 << 2 | 1 << 5, size=3 * GIB),)
    nics = HeldDevices(resource=NIC, zones=1 << 5, count=2), HeldDevices(resource=NIC, zones=None, count=1)
    ledger = words.ledger()
    ledger.report(words.agent((6, 8), words.placed(A, 0, memory=blocks, devices=nics), zones=(2, 5)))
    ledger.seen(A, 1.0)
    ledger.row(NODE)
    found = ledger.holding("uid-a")
    assert found is not None
    assert found.entries == (
        Entry(CPU, 2, 0b01),
        Entry(MEMORY, 3 * GIB, 0b11, span=2),
        Entry(2, 1, 0),
        Entry(2, 2, 0b10),
    )


def test_memory_in_zones_that_the_node_does_not_have_is_not_charged() -> None:
    blocks = (MemoryBlock(type="memory", zones=1 << 9, size=GIB),)
    ledger = words.ledger()
    ledger.report(words.agent((6, 8), words.placed(A, 0, memory=blocks)))
    ledger.seen(A, 1.0)
    ledger.row(NODE)
    found = ledger.holding("uid-a")
    assert found is not None
    assert found.entries == (Entry(CPU, 2, 0b01),)


def test_a_running_pod_that_is_not_named_with_a_later_one_holds_nothing() -> None:
    late = words.pod("late", 1)
    ledger = predicted(words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    ledger.predict(NODE, late, words.held(late, 1, 1))
    assert ledger.report(words.agent((8, 8))).divergences == ()
    assert words.free(ledger) == [6, 7]
    (wrong,) = ledger.report(words.agent((8, 7), words.placed(late, 1, 1))).divergences
    assert (wrong.kind, words.free(ledger)) == (DivergenceKind.NOTHING_HELD, [8, 7])


def test_a_pod_that_runs_for_very_long_and_is_never_named_holds_nothing() -> None:
    ledger = predicted(words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    counts = [len(ledger.report(words.agent((8, 8))).divergences) for _ in range(STUBBORN)]
    assert (counts, words.free(ledger)) == ([0] * (STUBBORN - 1) + [1], [8, 8])


def test_a_pod_that_was_named_before_and_is_left_out_now_is_charged_on_top() -> None:
    ledger = predicted(words.held(A, 0))
    ledger.seen(words.running(A), 1.0)
    ledger.report(words.agent((6, 8), words.placed(A, 0)))
    for _ in range(3):
        ledger.report(words.agent((8, 8)))
    assert words.free(ledger) == [6, 8]


TOTALS = {
    "fewer free than its pods explain": ((6, 7), [DivergenceKind.TOTALS]),
    "just as many": ((6, 8), []),
    "more": ((7, 8), []),
}


@pytest.mark.parametrize("free, kinds", TOTALS.values(), ids=TOTALS)
def test_a_plain_report_wins_and_counts_once_if_it_has(free: tuple[int, int], kinds: list[DivergenceKind]) -> None:
    ledger = predicted(words.held(A, 0))
    assert [each.kind for each in ledger.report(words.signed(free, "a")).divergences] == kinds
    assert ledger.report(words.signed(free, "a")).divergences == ()
    assert words.free(ledger) == list(free)


def test_without_a_fingerprint_a_pod_may_be_missing_and_totals_must_be_short_twice() -> None:
    ledger = words.ledger()
    assert ledger.report(words.facts((8, 7))).divergences == ()
    (wrong,) = ledger.report(words.facts((7, 7))).divergences
    assert (wrong.kind, wrong.resource, wrong.observed) == (DivergenceKind.TOTALS, "cpu", (1,))
    assert (wrong.modelled, wrong.reported) == (8, 7)


def test_pods_of_unknown_place_explain_what_is_missing_in_any_zone() -> None:
    ledger = words.ledger()
    ledger.seen(words.running(A), 1.0)
    assert ledger.report(words.signed((8, 6), "a")).divergences == ()


# What plain init containers hold (engine spec R3). The init container asks for 4 CPUs, the app for 2.

SLOW_START = words.pod("a", init=[words.container("setup", 4)])
INIT = words.holding(
    SLOW_START,
    [Entry(CPU, 4, 0b01), Entry(CPU, 2, 0b01, certain=False)],
    containers=(ContainerZones("setup", (0b01,)), ContainerZones("app", (0b01,))),
)
SHOWN = words.placed(SLOW_START, 0)
WHOLE = structs.replace(
    SHOWN, holdings=(structs.replace(SHOWN.holdings[0], container="setup", cpus=0b111100), *SHOWN.holdings)
)
HIDDEN = {
    "not covered": (words.agent((8, 8)), (2, 4)),
    "covered, init container not shown": (words.agent((6, 8), SHOWN), (2, 4)),
    "covered, init container shown": (words.agent((2, 8), WHOLE), (2, 2)),
    "free from the manager's books": (words.agent((4, 8), SHOWN, from_checkpoints=frozenset({"cpu"})), (4, 4)),
    "covered by a plain report": (words.signed((6, 8), "a"), (2, 4)),
}


@pytest.mark.parametrize("report, left", HIDDEN.values(), ids=HIDDEN)
def test_cpus_of_init_containers_stay_charged(report: RowFacts, left: tuple[int, int]) -> None:
    ledger = predicted(INIT, SLOW_START)
    ledger.seen(words.running(SLOW_START), 1.0)
    ledger.report(report)
    assert words.bounds(ledger)[0] == left


NICS = ("nic-0", "nic-1")
REUSED = {
    "by id": (HeldDevices(resource=NIC, zones=1, count=2, ids=NICS), (Entry(2, 2, 0b01),)),
    "by number": (HeldDevices(resource=NIC, zones=1, count=2), (Entry(2, 2, 0b01), Entry(2, 2, 0b01, certain=False))),
}


@pytest.mark.parametrize("nics, entries", REUSED.values(), ids=REUSED)
def test_devices_that_an_init_container_held_before_count_once(nics: HeldDevices, entries: tuple[Entry, ...]) -> None:
    holdings = tuple(structs.replace(each, devices=(nics,)) for each in WHOLE.holdings)
    ledger = predicted(INIT, SLOW_START)
    ledger.report(words.agent((2, 8), structs.replace(WHOLE, holdings=holdings)))
    found = ledger.holding("uid-a")
    assert found is not None
    assert tuple(entry for entry in found.entries if entry.column == 2) == entries


def test_containers_without_init_containers_before_them_share_no_devices() -> None:
    nics = (HeldDevices(resource=NIC, zones=1, count=1),)
    two = tuple(structs.replace(words.placed(A, 0).holdings[0], container=name, devices=nics) for name in ("app", "b"))
    ledger = predicted(words.held(A, 0))
    ledger.report(words.agent((6, 8), structs.replace(words.placed(A, 0), holdings=two)))
    found = ledger.holding("uid-a")
    assert found is not None
    assert Entry(2, 2, 0b01) in found.entries


def test_they_are_free_when_the_pod_is_gone() -> None:
    ledger = predicted(INIT, SLOW_START)
    ledger.report(words.agent((6, 8), SHOWN))
    ledger.seen(words.finished(SLOW_START), 1.0)
    assert words.free(ledger) == [8, 8]


def test_a_plain_report_that_covers_them_is_given_back_in_doubt() -> None:
    ledger = predicted(INIT, SLOW_START)
    ledger.report(words.signed((4, 8), "a"))
    ledger.seen(words.finished(SLOW_START), 1.0)
    assert words.bounds(ledger)[0] == (4, 8)


def test_where_an_init_container_went_unseen_it_may_be_anywhere() -> None:
    ledger = words.ledger()
    ledger.report(words.agent((6, 8), SHOWN))
    ledger.seen(words.running(SLOW_START), 1.0)
    assert words.bounds(ledger) == [(2, 6), (4, 8)]


def test_memory_of_init_containers_is_free_when_a_later_container_has_started() -> None:
    ledger = predicted(INIT, SLOW_START, words.with_memory((8, 8), (8, 8)))
    ledger.seen(words.initialising(SLOW_START), 1.0)
    ledger.report(words.with_memory((6, 8), (7, 8), placements=(SHOWN,), zone_cpus=(0xFF, 0xFF0000)))
    assert words.bounds(ledger, column=MEMORY)[0] == (6 * GIB, 7 * GIB)
    assert ledger.seen(words.running(SLOW_START), 2.0).freed == (NODE,)
    assert words.bounds(ledger, column=MEMORY)[0] == (7 * GIB, 7 * GIB)


# Zones that come and go: entries know positions, pods sit in real zones.


def test_entries_follow_their_zones_to_new_positions() -> None:
    ledger = predicted(words.held(A, 1), report=words.facts((8, 8), (0, 4)))
    ledger.report(words.signed((8, 8, 8), zones=(0, 2, 4)))
    assert words.free(ledger) == [8, 8, 6]


def test_what_was_held_in_a_zone_that_vanished_is_dropped_and_counted() -> None:
    ledger = predicted(words.held(A, 1), report=words.facts((8, 8), (0, 4)))
    ledger.report(words.signed((8, 8), zones=(0, 2)))
    assert (words.free(ledger), ledger.problems[Problem.ZONE_VANISHED]) == ([8, 8], 1)


def test_what_may_be_in_a_zone_that_vanished_is_in_the_others() -> None:
    ledger = predicted(words.holding(A, [Entry(CPU, 2, 0b11)]), report=words.facts((8, 8), (0, 4)))
    ledger.report(words.signed((8,), zones=(4,)))
    assert (words.free(ledger), ledger.problems) == ([6], {})


def test_an_observation_is_read_again_when_zones_change() -> None:
    ledger = predicted(words.held(A, 0), report=words.facts((8, 8), (3, 4)))
    ledger.report(words.agent((6, 8), words.placed(A, 0), zones=(3, 4)))
    ledger.report(words.agent((8, 6, 8), words.placed(A, 1), zones=(1, 3, 4)))
    ledger.seen(words.finished(A), 1.0)
    assert words.free(ledger) == [8, 8, 8]


def test_devices_of_several_zones_may_come_back_in_each_of_them() -> None:
    supply = Supply(size=(2, 2), allocatable=(2, 2), free=(1, 1))
    nics = (HeldDevices(resource=NIC, zones=0b11, count=1),)
    ledger = words.ledger()
    ledger.report(words.agent((6, 8), words.placed(A, 0, devices=nics), supplies={NIC: supply}))
    ledger.seen(words.running(A), 1.0)
    ledger.seen(words.finished(A), 2.0)
    assert words.bounds(ledger, column=2) == [(1, 2), (1, 2)]
