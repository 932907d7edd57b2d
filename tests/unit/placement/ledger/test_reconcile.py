"""A report entered into a node's ledger: what becomes observed, what is corrected, what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.ledger import reconcile
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.divergences import DivergenceKind
from numalign.placement.ledger.nodeledger import NodeLedger
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.ledger.reconcile import ReconcileResult
from numalign.placement.ledger.unobserved import UnobservedPods
from tests.unit.placement import ledgerwords as words

A = words.pod("a")


def record(name: str = "a", held: Holding | None = None, **more: Any) -> PodRecord:
    pod = words.pod(name)
    given: dict[str, Any] = {"holding": held or words.held(pod, 0), "bound": True} | more
    return PodRecord(uid=pod.metadata.uid, name=pod.metadata.full_name, order=1, pod=pod, **given)


def node(*records: PodRecord) -> NodeLedger:
    made = NodeLedger(words.NODE)
    made.zones = (0, 1)
    for each in records:
        made.put(each)
    return made


def taken(made: NodeLedger, report: RowFacts) -> ReconcileResult:
    return reconcile.take(made, report, UnobservedPods(Resources(), Shapes()))


def holding(made: NodeLedger, uid: str = "uid-a") -> Holding:
    found = made.records[uid].holding
    assert found is not None
    return found


SEEN = {
    "where it was predicted": (words.placed(A, 0), Entry(CPU, 2, 0b01), []),
    "in another zone": (words.placed(A, 1), Entry(CPU, 2, 0b10), [DivergenceKind.ZONES]),
    "with more than predicted": (words.placed(A, 0, 3), Entry(CPU, 3, 0b01), [DivergenceKind.AMOUNT]),
    "with less, which a report may hide": (words.placed(A, 0, 1), Entry(CPU, 1, 0b01), []),
}


@pytest.mark.parametrize("placed, entry, wrong", SEEN.values(), ids=SEEN)
def test_a_named_pod_is_observed(placed: Any, entry: Entry, wrong: list[DivergenceKind]) -> None:
    made = node(record())
    result = taken(made, words.agent((6, 8), placed))
    assert (holding(made).source, holding(made).entries) == (Source.OBSERVED, (entry,))
    assert [each.kind for each in result.divergences] == wrong


def test_a_running_pod_that_reports_never_name_holds_nothing() -> None:
    made = node(record(started=0, start_order=1), record("b", after=0))
    made.records["uid-b"].order = 5
    result = taken(made, words.agent((8, 8), words.placed(words.pod("b"), 0)))
    assert (holding(made).entries, holding(made).source) == ((), Source.OBSERVED)
    assert [each.kind for each in result.divergences] == [DivergenceKind.NOTHING_HELD]


def test_an_ended_pod_that_a_newer_report_does_not_have_is_struck() -> None:
    made = node(record(life=PodLife.ENDED, ended=0, cover=Cover.YES, reported=True))
    assert taken(made, words.agent((8, 8))).struck == ["uid-a"]
    assert made.records == {}


def test_an_ended_pod_stays_until_a_report_comes_in_after_its_end() -> None:
    made = node(record(life=PodLife.ENDED, ended=1, cover=Cover.YES, reported=True))
    assert [taken(made, words.agent((8, 8))).struck for _ in range(2)] == [[], ["uid-a"]]


def test_less_free_than_pods_explain_is_a_divergence() -> None:
    made = node(record(cover=Cover.YES, started=0))
    result = taken(made, words.signed((5, 8), "a"))
    assert [(each.kind, each.observed, each.modelled, each.reported) for each in result.divergences] == [
        (DivergenceKind.TOTALS, (0,), 6, 5)
    ]


def test_entries_that_lost_their_zone_are_counted() -> None:
    assert taken(node(record()), words.facts((8,), (1,))).vanished == 1


REPEATED: dict[str, tuple[dict[str, Any], bool]] = {
    "covers all its pods": ({"cover": Cover.YES}, True),
    "may yet cover one": ({}, False),
    "has one that ended": ({"cover": Cover.YES, "life": PodLife.ENDED}, False),
}


@pytest.mark.parametrize("known, expected", REPEATED.values(), ids=REPEATED)
def test_the_same_report_again_need_not_be_read_if_the_last_one(known: dict[str, Any], expected: bool) -> None:
    made = node(record(**known))
    made.take(words.facts((6, 8)))
    assert reconcile.is_repeated(made, words.facts((6, 8))) is expected
    assert not reconcile.is_repeated(made, words.facts((5, 8)))


# Interchangeable pods


def alike(name: str, zone: int) -> PodRecord:
    pod = words.pod(name)
    return record(name, words.held(pod, zone, shape=7, interchangeable=True))


def test_interchangeable_pods_may_each_be_in_any_of_their_places() -> None:
    wide = reconcile.widened([alike("a", 0), alike("b", 1), record("c")])
    assert wide.keys() == {"uid-a", "uid-b"}
    assert {each.entries for each in wide.values()} == {(Entry(CPU, 2, 0b11),)}
    assert {each.containers for each in wide.values()} == {(ContainerZones("app", (0b01, 0b10)),)}


def test_interchangeable_pods_in_one_zone_stay_there() -> None:
    records = [alike("a", 0), alike("b", 0)]
    assert [each.entries for each in reconcile.widened(records).values()] == [(Entry(CPU, 2, 0b01),)] * 2


def test_a_report_that_covers_only_some_of_them_leaves_the_others_anywhere() -> None:
    made = node(alike("a", 0), alike("b", 1))
    taken(made, words.signed((6, 8), "a"))
    assert made.records["uid-a"].cover is Cover.YES
    assert holding(made, "uid-b").entries == (Entry(CPU, 2, 0b11),)
