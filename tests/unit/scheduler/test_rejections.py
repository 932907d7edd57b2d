"""The storm guard: who is kept off where, for how long, and when it is over."""

from __future__ import annotations

import pytest

from numalign.scheduler import rejections
from numalign.scheduler.rejections import LONGEST_PAUSE, MEMORY, PATIENCE, Rejections
from tests.unit.scheduler import servers

ROWS = {"a": 3, "b": 5}


def kept_off(guard: Rejections, now: float, shape: int = 1) -> list[int]:
    found = guard.kept_off(shape, ROWS, now)
    return [] if found is None else found.tolist()


def test_a_shape_is_kept_off_the_node_that_turned_it_away_and_no_other() -> None:
    guard = Rejections()
    guard.rejected(1, "a", 10.0)
    assert kept_off(guard, 10.0) == [3]
    assert kept_off(guard, 10.0, shape=2) == []


def test_it_comes_back_when_its_pause_is_over_and_the_node_has_changed() -> None:
    guard = Rejections()
    pause = guard.rejected(1, "a", 10.0)
    guard.changed("a")
    assert kept_off(guard, 10.0 + pause / 2) == [3]
    assert kept_off(guard, 10.0 + pause) == []


def test_without_a_change_it_stays_away_for_long_but_not_for_ever() -> None:
    guard = Rejections()
    pause = guard.rejected(1, "a", 0.0)
    assert kept_off(guard, pause + PATIENCE - 1) == [3]
    assert kept_off(guard, pause + PATIENCE) == []


def test_each_rejection_doubles_the_pause_up_to_a_limit() -> None:
    guard = Rejections()
    assert [guard.rejected(1, "a", float(n)) for n in range(10)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, LONGEST_PAUSE]


def test_the_end_is_told_once() -> None:
    guard = Rejections()
    guard.rejected(1, "a", 0.0)
    guard.changed("a")
    assert [guard.ended(at) for at in (0.5, 1.0, 1.5)] == [[], ["a"], []]


def test_what_was_long_ago_is_forgotten() -> None:
    guard = Rejections()
    guard.rejected(1, "a", 0.0)
    guard.ended(MEMORY)
    assert len(guard) == 0
    assert guard.rejected(1, "a", MEMORY + 1) == 1.0


def test_a_node_that_is_gone_is_nobody_s_enemy() -> None:
    guard = Rejections()
    guard.rejected(1, "a", 0.0)
    guard.gone("a")
    assert kept_off(guard, 0.0) == []


@pytest.mark.parametrize(
    "status, is_one",
    [
        ({"phase": "Failed", "reason": "TopologyAffinityError"}, True),
        ({"phase": "Failed", "reason": "OutOfcpu"}, True),
        ({"phase": "Failed", "reason": "Evicted"}, False),
        ({"phase": "Failed", "reason": ""}, False),
        ({"phase": "Running", "reason": "OutOfcpu"}, False),
    ],
)
def test_what_counts_as_turned_away(status: dict[str, str], is_one: bool) -> None:
    assert rejections.is_rejection(servers.on(servers.trainer("p"), "a", **status)) is is_one
