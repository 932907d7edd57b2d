"""When the next look at the node is due."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.agent.triggers.schedule import Due, Pace

PACE = Pace(period=60, jitter=0.1, settle=0.1, gap=1.0)


def started(now: float = 100.0, chance: float = 0.0) -> Due:
    due = Due(PACE)
    due.take(now, chance)
    return due


def test_the_first_look_is_at_once() -> None:
    due = Due(PACE)
    assert due.at() < 0
    assert due.take(100.0, 0.0) == {"start"}


def test_without_requests_a_period_passes() -> None:
    due = started()
    assert due.at() == 160.0
    assert due.take(160.0, 0.0) == {"period"}


def test_chance_makes_periods_shorter_and_never_longer() -> None:
    assert started(chance=1.0).at() == 154.0


def test_requests_that_come_together_make_one_snapshot() -> None:
    due = started()
    for moment in (110.0, 110.05, 110.09):
        due.request("kubelet-state", moment)
    assert due.at() == 110.1
    assert due.take(110.1, 0.0) == {"kubelet-state"}
    assert due.at() == 170.1


def test_looks_keep_a_distance() -> None:
    due = started()
    due.request("kubelet-state", 100.2)
    assert due.at() == 101.0


def test_a_request_during_a_snapshot_makes_another() -> None:
    due = started()
    due.request("notified", 100.0)
    due.take(101.0, 0.0)
    due.request("podresources", 101.001)
    assert due.at() == 102.0
    assert due.take(102.0, 0.0) == {"podresources"}


def test_a_scheduled_snapshot_comes_regardless_of_earlier_ones() -> None:
    due = started()
    due.request_at("asked", 110.0)
    due.request("notified", 105.0)
    assert due.take(due.at(), 0.0) == {"notified"}
    assert due.at() == 110.0
    assert due.take(110.0, 0.0) == {"asked"}


def test_one_look_serves_all_reasons() -> None:
    due = started()
    due.request_at("asked", 160.0)
    due.request("notified", 159.95)
    assert due.take(160.0, 0.0) == {"asked", "notified", "period"}


@given(st.lists(st.floats(0, 300), max_size=60), st.floats(0, 1))
def test_no_request_waits_longer_than_the_gap_and_snapshots_keep_it(moments: list[float], chance: float) -> None:
    due, looks = started(0.0, chance), [0.0]
    for moment in sorted(moments):
        while due.at() <= moment:
            looks.append(due.at())
            due.take(due.at(), chance)
        due.request("kubelet-state", moment)
        assert due.at() <= moment + max(PACE.gap, PACE.settle) + 1e-6
    assert all(later - earlier >= PACE.gap - 1e-6 for earlier, later in pairwise(looks))


def test_expensive_snapshots_keep_more_distance_under_constant_requests() -> None:
    due = Due(Pace(share=0.005))
    due.take(0.0, 0.0)
    for _ in range(50):
        due.spent(0.01)
    due.request("pods", 0.1)
    assert due.at() == pytest.approx(2.0, rel=0.01)


def test_but_never_more_than_the_longest() -> None:
    due = Due(Pace(share=0.005, longest_gap=5.0))
    due.take(0.0, 0.0)
    for _ in range(50):
        due.spent(1.0)
    due.request("pods", 0.1)
    assert due.at() == 5.0


def test_one_dear_look_is_no_measure() -> None:
    due = Due(Pace(share=0.005))
    due.take(0.0, 0.0)
    due.spent(10.0)
    due.request("pods", 0.1)
    assert due.at() < 2.0


def test_an_urgent_request_does_not_keep_the_distance() -> None:
    due = started()
    due.request("kubelet-state", 100.2)
    due.request("devices", 100.3, urgent=True)
    assert due.at() == 100.3
    assert due.take(100.3, 0.0) == {"devices", "kubelet-state"}
    assert due.at() == 160.3


def test_urgent_requests_keep_the_minimum_distance_among_themselves_however_dear_snapshots_are() -> None:
    due = Due(Pace(share=0.005))
    due.take(100.0, 0.0)
    for _ in range(50):
        due.spent(1.0)
    due.request("devices", 100.2, urgent=True)
    due.take(100.2, 0.0)
    for moment in (100.5, 100.7):
        due.request("devices", moment, urgent=True)
    assert due.at() == pytest.approx(101.2)
    due.take(101.2, 0.0)
    due.request("devices", 103.0, urgent=True)
    assert due.at() == 103.0
