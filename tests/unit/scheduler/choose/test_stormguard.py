"""The storm guard: who is kept off where, for how long, and when it is over."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.kubelet import refusals
from numalign.scheduler.choose.stormguard import BACKOFF, MEMORY, MOST_KEPT, PATIENCE, Like, Replicas, StormGuard
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import owned, trainer

ROWS = {"a": 3, "b": 5}
ONE_OF_A_SET = owned(trainer("p"), "uid-set")
SET = Replicas("uid-set", 1)


class Guard(StormGuard):
    def refused(self, like: Like, node: str, now: float) -> float:
        return self.rejected(like, node, "OutOfcpu", now)


def kept_off(guard: StormGuard, now: float, shape: int = 1) -> list[int]:
    return sorted(guard.kept_off(ONE_OF_A_SET, shape, ROWS, now))


def test_a_shape_is_kept_off_the_node_that_turned_it_away_and_no_other() -> None:
    guard = Guard()
    guard.refused(1, "a", 10.0)
    assert kept_off(guard, 10.0) == [3]
    assert kept_off(guard, 10.0, shape=2) == []


def test_it_comes_back_when_its_pause_is_over_and_the_node_has_changed() -> None:
    guard = Guard()
    pause = guard.refused(1, "a", 10.0)
    guard.changed("a")
    assert kept_off(guard, 10.0 + pause / 2) == [3]
    assert kept_off(guard, 10.0 + pause) == []


def test_without_a_change_it_stays_away_for_long_but_not_for_ever() -> None:
    guard = Guard()
    pause = guard.refused(1, "a", 0.0)
    assert kept_off(guard, pause + PATIENCE - 1) == [3]
    assert kept_off(guard, pause + PATIENCE) == []


def test_each_rejection_doubles_the_pause_up_to_a_limit() -> None:
    guard = Guard()
    assert [guard.refused(1, "a", float(n)) for n in range(10)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, BACKOFF.longest]


def test_the_end_is_told_once() -> None:
    guard = Guard()
    guard.refused(1, "a", 0.0)
    guard.changed("a")
    assert [guard.ended(at) for at in (0.5, 1.0, 1.5)] == [[], ["a"], []]


def test_what_was_long_ago_is_forgotten() -> None:
    guard = Guard()
    guard.refused(1, "a", 0.0)
    guard.ended(MEMORY)
    assert len(guard) == 0
    assert guard.refused(1, "a", MEMORY + 1) == 1.0


def test_a_node_that_is_gone_is_nobody_s_enemy() -> None:
    guard = Guard()
    guard.refused(1, "a", 0.0)
    guard.gone("a")
    assert kept_off(guard, 0.0) == []


def test_one_replica_that_others_placed_may_be_an_accident_and_two_are_none() -> None:
    guard = Guard()
    assert guard.refused(SET, "a", 0.0) == 0.0
    assert (kept_off(guard, 0.0), guard.ended(1.0)) == ([], [])
    assert [guard.refused(SET, "a", 2.0), guard.refused(SET, "a", 2.0)] == [1.0, 2.0]
    assert guard.kept_off(ONE_OF_A_SET, 1, ROWS, 2.0) == {
        3: "node(s) keep turning away replicas of the same owner (OutOfcpu)"
    }


def test_two_replicas_of_which_one_was_long_ago_are_an_accident_each() -> None:
    guard = Guard()
    guard.refused(SET, "a", 0.0)
    assert guard.refused(SET, "a", MEMORY) == 0.0


@pytest.mark.parametrize(
    "pod, shape", [(trainer("alone"), 1), (owned(trainer("p"), "uid-other"), 1), (ONE_OF_A_SET, 2)]
)
def test_others_replicas_keep_off_their_like_of_the_same_owner_and_nobody_else(pod: Pod, shape: int) -> None:
    guard = Guard()
    for _ in range(3):
        guard.refused(SET, "a", 0.0)
    assert guard.kept_off(pod, shape, ROWS, 0.0) == {}


def test_thousands_of_replicas_that_fail_are_one_entry_which_is_gone_after_an_hour() -> None:
    guard = Guard()
    for number in range(5000):
        guard.refused(SET, "a", float(number))
    assert len(guard) == 1
    guard.ended(4999.0 + MEMORY)
    assert (len(guard), vars(guard)) == (0, vars(StormGuard()))


def test_of_owners_without_end_the_latest_are_remembered() -> None:
    guard = Guard()
    for number in range(MOST_KEPT + 100):
        guard.refused(Replicas(f"uid-{number}", 1), "a", float(number))
    assert len(guard) == MOST_KEPT
    assert guard.refused(Replicas("uid-0", 1), "a", MOST_KEPT + 100.0) == 0.0
    assert guard.refused(Replicas(f"uid-{MOST_KEPT}", 1), "a", MOST_KEPT + 100.0) == 1.0


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
    assert refusals.is_rejection(servers.on(servers.trainer("p"), "a", **status)) is is_one
