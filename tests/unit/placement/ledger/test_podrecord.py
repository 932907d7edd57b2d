"""What is known of one pod on one node, and how long an ended pod is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.podrecord import AFTER_GRACE, REMEMBERED, SURE, EndedPods, PodRecord
from tests.unit.placement import ledgerwords as words

POD = words.pod("a")
NOW = 1000.0


def record(**more: Any) -> PodRecord:
    return PodRecord(uid="uid-a", name=POD.metadata.full_name, order=1, pod=POD, **more)


PENDING: dict[str, tuple[dict[str, Any], bool]] = {
    "bound and in no report": ({}, True),
    "holds something": ({"holding": words.held(POD, 0)}, True),
    "holds nothing exclusively": ({"holding": words.holding(POD, ())}, False),
    "in a report": ({"cover": Cover.YES}, False),
    "seen to run": ({"started": 1}, False),
    "ended": ({"life": PodLife.ENDED}, False),
    "left out": ({"absent": True}, False),
}


@pytest.mark.parametrize("known, expected", PENDING.values(), ids=PENDING)
def test_a_pod_is_pending_until_it_was_admitted_or_reported(known: dict[str, Any], expected: bool) -> None:
    assert record(**known).is_pending is expected


@pytest.mark.parametrize("reports, expected", [(SURE - 1, False), (SURE, True)])
def test_age_settles_a_pod_that_runs_and_forgets_one_that_ended(reports: int, expected: bool) -> None:
    runs, gone = record(), record()
    runs.start(3, order=2)
    gone.end(PodLife.ENDED, 3, order=2)
    assert (runs.is_settled(3 + reports), gone.is_forgotten(3 + reports)) == (expected, expected)


def test_a_pod_that_a_report_covers_is_settled_at_once() -> None:
    assert record(cover=Cover.YES).is_settled(0)


def test_a_pod_that_lives_is_never_forgotten() -> None:
    assert not record(started=0).is_forgotten(1000)


def test_an_ended_pod_is_remembered_for_a_while_and_returned_once() -> None:
    ended = EndedPods()
    ended.note("uid-a", NOW)
    assert "uid-a" in ended
    assert ended.forgotten(NOW + REMEMBERED - 1) == []
    assert (ended.forgotten(NOW + REMEMBERED), ended.forgotten(NOW + REMEMBERED)) == (["uid-a"], [])
    assert "uid-a" not in ended


def test_a_pod_that_ends_again_is_remembered_from_then_on() -> None:
    ended = EndedPods()
    ended.note("uid-a", NOW)
    ended.note("uid-a", NOW + 10)
    assert ended.forgotten(NOW + REMEMBERED) == []


GRACE: dict[str, tuple[dict[str, Any], int | None, float]] = {
    "the pod's own": ({"termination_grace_period_seconds": 20}, None, 20),
    "that of the deletion": ({"termination_grace_period_seconds": 20}, 5, 5),
    "nothing less than none": ({"termination_grace_period_seconds": -1}, None, 0),
}


@pytest.mark.parametrize("spec, deletion, seconds", GRACE.values(), ids=GRACE)
def test_a_deleted_pod_may_run_until_its_grace_period_is_over(
    spec: dict[str, Any], deletion: int | None, seconds: float
) -> None:
    pod = words.pod("a", **spec)
    pod = structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_grace_period_seconds=deletion))
    ended, until = EndedPods(), NOW + seconds + AFTER_GRACE
    assert ended.wait_for(pod, "uid-a", words.NODE, NOW) == until
    assert (ended.due(until - 1), ended.due(until)) == ([], [(until, "uid-a", words.NODE)])
