"""Which pods a report covers: by the names in it, by its fingerprint, or by the age of pods and by amounts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import coverage
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.coverage import Coverage, NodeHistory
from numalign.placement.ledger.podrecord import PATIENT, STUBBORN, SURE, PodRecord
from tests.unit.placement import ledgerwords as words

NO, YES, DOUBT = Cover
LATEST = 5
"""The count of the report that is judged."""


def record(name: str, order: int = 1, cpus: int = 2, zone: int = 0, **more: Any) -> PodRecord:
    pod = words.pod(name, cpus)
    given: dict[str, Any] = {"holding": words.held(pod, zone, cpus), "bound": True} | more
    return PodRecord(uid=pod.metadata.uid, name=pod.metadata.full_name, order=order, pod=pod, **given)


def ended(name: str, order: int = 1, **more: Any) -> PodRecord:
    given: dict[str, Any] = {"life": PodLife.ENDED, "ended": LATEST - 1, "end_order": order, "cover": YES} | more
    return record(name, order, **given)


def judged(report: RowFacts, *records: PodRecord, **more: Any) -> Coverage:
    node = NodeHistory(records, LATEST, more.pop("remains", {}), placements=report.placements or (), **more)
    return coverage.judge(report, node, Resources(), _all_have_holdings)


def _all_have_holdings(records: Iterable[PodRecord]) -> None:
    assert all(record.holding is not None for record in records)


def covers(found: Coverage) -> dict[str, Cover]:
    return {uid.removeprefix("uid-"): cover for uid, cover in found.covers.items()}


# Names


def test_a_report_that_names_its_pods_covers_exactly_these() -> None:
    first, second = record("a"), record("b", 2)
    found = judged(words.agent((6, 8), words.placed(first.pod, 0)), first, second)
    assert (covers(found), found.is_exact) == ({"a": YES, "b": NO}, True)
    assert list(found.listed) == ["uid-a"]


def test_a_name_alone_that_two_pods_have_proves_nothing_for_either() -> None:
    old, new = ended("a"), record("a", 2)
    new.uid = "uid-new"
    report = words.agent((6, 8), words.placed(words.pod("a"), 0, uid=""))
    assert covers(judged(report, old, new)) == {"a": DOUBT, "new": DOUBT}


def test_pods_that_ended_long_ago_are_left_out() -> None:
    gone = ended("a")
    gone.ended = LATEST - STUBBORN
    assert covers(judged(words.agent((8, 8)), gone)) == {}


# Fingerprints

SIGNED = {
    "all": (("a", "b"), {"a": YES, "b": YES}),
    "the first that arrived": (("a",), {"a": YES, "b": NO}),
    "none yet": ((), {"a": NO, "b": NO}),
}


@pytest.mark.parametrize("names, expected", SIGNED.values(), ids=SIGNED)
def test_a_fingerprint_is_that_of_the_pods_that_arrived_first(names: tuple[str, ...], expected: Any) -> None:
    found = judged(words.signed((8, 8), *names), record("a"), record("b", 2))
    assert (covers(found), found.is_exact) == (expected, True)


def test_pods_leave_a_fingerprint_in_the_order_of_their_end() -> None:
    report = words.signed((8, 8), "b")
    assert covers(judged(report, ended("a", 1), ended("b", 2))) == {"a": NO, "b": YES}


def test_a_pod_that_came_and_left_after_the_report_is_not_in_its_fingerprint() -> None:
    runs, late = record("a", started=LATEST - 1), ended("late", 3, cover=NO)
    found = judged(words.signed((8, 8), "a", "b"), runs, ended("b", 2), late)
    assert covers(found) == {"a": YES, "b": YES, "late": NO}


def test_before_kubernetes_1_34_a_finished_pod_may_only_be_named() -> None:
    report = words.signed((8, 8), "a", minor=(1, 33))
    assert covers(judged(report, ended("a"))) == {"a": DOUBT}


def test_finished_pods_whose_objects_remain_may_be_in_a_fingerprint() -> None:
    gone = record("gone")
    found = judged(words.signed((8, 8), "a", "gone"), record("a"), remains={gone.uid: gone.hash})
    assert (covers(found), found.is_exact) == ({"a": YES}, True)


def test_a_fingerprint_of_exclusive_pods_leaves_out_those_that_hold_nothing() -> None:
    shared = record("shared", 2, holding=words.holding(words.pod("shared"), ()))
    found = judged(words.signed((6, 8), "a", exclusive_only=True), record("a"), shared)
    assert (covers(found)["a"], found.is_exact) == (YES, True)


def test_a_fingerprint_of_other_pods_leaves_young_ones_in_doubt() -> None:
    found = judged(words.signed((4, 8), "unknown"), record("a"), matched=LATEST - 1)
    assert (covers(found), found.is_exact) == ({"a": DOUBT}, False)


@pytest.mark.parametrize("matched, expected", [(LATEST - 1, {"a": DOUBT}), (None, {})], ids=["mostly ours", "never"])
def test_age_decides_where_fingerprints_never_were_those_of_known_pods(matched: int | None, expected: Any) -> None:
    old = record("a", started=LATEST - SURE)
    assert covers(judged(words.signed((4, 8), "unknown"), old, matched=matched)) == expected


# Age and amounts

YOUNG = {
    "amounts have room for it": (record("a"), (6, 8), {"a": YES}),
    "amounts have no room for it": (record("a"), (7, 8), {"a": NO}),
    "it was decided after the report": (record("a", after=LATEST), (4, 4), {"a": NO}),
    "it runs since long ago": (record("a", started=LATEST - SURE), (8, 8), {}),
    "it ended long ago": (ended("a", ended=LATEST - SURE), (8, 8), {}),
    "it ended lately": (ended("a"), (6, 8), {"a": YES}),
}


@pytest.mark.parametrize("pod, free, expected", YOUNG.values(), ids=YOUNG)
def test_a_plain_report_covers_a_pod_if(pod: PodRecord, free: tuple[int, int], expected: Any) -> None:
    assert covers(judged(words.facts(free), pod)) == expected


def test_where_not_all_young_pods_fit_into_what_is_used_each_is_in_doubt() -> None:
    assert covers(judged(words.facts((6, 8)), record("a"), record("b", 2))) == {"a": DOUBT, "b": DOUBT}


def test_settled_pods_take_their_part_of_what_is_used_first() -> None:
    settled = record("old", started=LATEST - SURE, cover=YES)
    assert covers(judged(words.facts((6, 8)), settled, record("a", 2))) == {"a": NO}


def test_how_long_a_report_outweighs_age() -> None:
    reports = words.facts(), words.signed((8, 8)), words.agent((8, 8))
    assert [coverage.sure(each) for each in reports] == [SURE, PATIENT, STUBBORN]
