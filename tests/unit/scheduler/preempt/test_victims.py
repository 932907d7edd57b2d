"""Whom to evict from one node: as few and as unimportant pods as possible."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.scheduler.preempt import victims
from tests.unit.scheduler import waitingpods


def pod(name: str, priority: int = 0, started: str | None = "2026-01-01T00:00:00Z") -> Pod:
    status: dict[str, Any] = {"startTime": started} if started else {}
    return waitingpods.pod(name, {"priority": priority}, status)


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00Z"


class Zones:
    """A node with room for so many pods in each zone; the preemptor needs a zone for itself, or so many pods gone."""

    def __init__(self, zones: dict[str, int], needs: int | None = None) -> None:
        self.masks = {f"uid-{name}": 1 << zone for name, zone in zones.items()}
        self.needs = needs

    def fits(self, removed: Collection[str]) -> bool:
        if self.needs is not None:
            return len(removed) >= self.needs
        left = {mask for uid, mask in self.masks.items() if uid not in removed}
        return len(left) < len(set(self.masks.values()))


def chosen(pods: list[Pod], node: Zones, violating: Collection[str] = ()) -> list[str]:
    lower = sorted(pods, key=victims.importance)
    found = victims.chosen(lower, violating, node.masks, node.fits)
    return [each.metadata.name for each in found.pods] if found else []


@pytest.mark.parametrize(
    "pods, expected",
    [
        ([pod("a", 3), pod("b", 1), pod("c", 2)], ["c", "b"]),
        ([pod("a", 0, at(3)), pod("b", 0, at(1)), pod("c", 0, at(2))], ["c", "a"]),
        ([pod("a", 0, None), pod("b", 0, at(1)), pod("c", 0, at(2))], ["c", "a"]),
    ],
    ids=["of a lower priority", "started later", "not started yet"],
)
def test_the_less_important_have_to_go(pods: list[Pod], expected: list[str]) -> None:
    assert chosen(pods, Zones({}, needs=2)) == expected


def test_pods_that_a_budget_speaks_for_are_given_back_first() -> None:
    pods = [pod("a", 3), pod("b", 2), pod("c", 1)]
    assert chosen(pods, Zones({}, needs=2), {"uid-c"}) == ["a", "b"]


def test_pods_of_one_zone_go_and_not_some_of_each() -> None:
    pods = [pod(name, started=at(minute)) for minute, name in enumerate("abcd")]
    assert chosen(pods, Zones({"a": 0, "b": 1, "c": 0, "d": 1})) == ["b", "d"]


def test_one_pod_that_has_a_zone_goes_rather_than_four_that_share_another() -> None:
    pods = [pod("old", started=at(0)), *(pod(f"new{n}", started=at(n)) for n in range(1, 5))]
    zones = Zones({"old": 0} | {f"new{n}": 1 for n in range(1, 5)})
    assert chosen(pods, zones) == ["old"]


def test_but_not_if_it_is_worth_more() -> None:
    pods = [pod("old", 5, at(0)), *(pod(f"new{n}", 0, at(n)) for n in range(1, 5))]
    zones = Zones({"old": 0} | {f"new{n}": 1 for n in range(1, 5)})
    assert chosen(pods, zones) == ["new1", "new2", "new3", "new4"]


def test_without_need_no_pod_is_evicted() -> None:
    assert chosen([pod("a"), pod("b")], Zones({}, needs=0)) == []


RANKS = [
    ("violates no budget", ([pod("a", 9)], ()), ([pod("b", 1)], ("uid-b",))),
    ("the highest priority is lower", ([pod("a", 1), pod("b", 1)], ()), ([pod("c", 2)], ())),
    ("the sum of priorities is less", ([pod("a", 2), pod("b", 0)], ()), ([pod("c", 2), pod("d", 1)], ())),
    ("there are fewer", ([pod("a", -5)], ()), ([pod("b", -5), pod("c", -9)], ())),
    ("they started later", ([pod("a", 1, at(5)), pod("b", 0, at(1))], ()), ([pod("c", 1, at(4)), pod("d", 0)], ())),
    ("they have not started", ([pod("a", 1, None)], ()), ([pod("b", 1, at(4))], ())),
]


@pytest.mark.parametrize("better, worse", [each[1:] for each in RANKS], ids=[each[0] for each in RANKS])
def test_of_two_nodes_the_one_is_better_where(better: Any, worse: Any) -> None:
    assert victims.of(*better).rank < victims.of(*worse).rank


@given(st.data())
def test_no_victim_could_have_been_spared(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 8))
    pods = [pod(f"p{n}", data.draw(st.integers(0, 2)), at(data.draw(st.integers(0, 9)))) for n in range(count)]
    zones = Zones({f"p{n}": data.draw(st.integers(0, 2)) for n in range(count)})
    gone = {f"uid-{name}" for name in chosen(pods, zones, data.draw(st.sets(st.sampled_from(list(zones.masks)))))}
    assert zones.fits(gone)
    assert not any(zones.fits(gone - {uid}) for uid in gone)
