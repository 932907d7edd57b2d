"""Taints keep pods away, or ask them to stay away."""

from typing import Any

import pytest

from numalign.placement.rules.nodes.nodespec import TaintToleration
from tests.unit.placement.rules import worlds

RULE = TaintToleration()


def taint(effect: str = "NoSchedule", key: str = "k", value: str = "v") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerates(taint: dict[str, str], *tolerations: dict[str, Any]) -> bool:
    world = worlds.world([worlds.node("a", taints=[taint])])
    return worlds.fitting(RULE, worlds.pod(tolerations=list(tolerations)), world) == ["a"]


@pytest.mark.parametrize(
    "taint, toleration, tolerated",
    [
        (taint(), {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        (taint(), {"key": "k", "operator": "", "value": "v", "effect": ""}, True),
        (taint(), {"key": "k", "value": "v"}, True),
        (taint(), {"key": "k", "operator": "Exists"}, True),
        (taint(), {"operator": "Exists"}, True),
        (taint(), {"key": "k", "operator": "Equal", "value": "w"}, False),
        (taint("NoExecute"), {"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        (taint("NoExecute"), {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}, True),
        (taint("PreferNoSchedule"), {"key": "other", "operator": "Exists"}, True),
        (taint(value="5"), {"key": "k", "operator": "Lt", "value": "9"}, False),
        (taint(), {"key": "k", "operator": "Sometimes"}, False),
    ],
)
def test_vectors_of_tolerations(taint: dict[str, str], toleration: dict[str, Any], tolerated: bool) -> None:
    """Kube-scheduler spec A.11."""
    assert tolerates(taint, toleration) is tolerated


def test_every_taint_needs_a_toleration_but_any_of_the_pods_will_do() -> None:
    both = [taint(key="a"), taint(key="b")]
    world = worlds.world([worlds.node("n", taints=both)])
    one, other = ({"key": key, "operator": "Exists"} for key in "ab")
    assert worlds.fitting(RULE, worlds.pod(tolerations=[one]), world) == []
    assert worlds.fitting(RULE, worlds.pod(tolerations=[one, other]), world) == ["n"]


def test_the_reason_does_not_name_the_taint() -> None:
    (refusal,) = worlds.refusals(RULE, worlds.pod(), worlds.world([worlds.node("a", taints=[taint()])]))
    assert refusal is not None
    assert (refusal.reasons, refusal.unresolvable) == (("node(s) had untolerated taint(s)",), True)


def test_fewer_untolerated_wishes_score_higher() -> None:
    wishes = [[], [taint("PreferNoSchedule", "a")], [taint("PreferNoSchedule", key) for key in "abc"]]
    world = worlds.world([worlds.node(str(place), taints=taints) for place, taints in enumerate(wishes)])
    assert worlds.scores(RULE, worlds.pod(), world) == [0, 1, 3]
    assert worlds.normalized(RULE, worlds.pod(), world) == [100, 67, 0]


def test_only_tolerations_for_wishes_count_in_the_score() -> None:
    world = worlds.world([worlds.node("n", taints=[taint("PreferNoSchedule")])])
    scores = [
        worlds.scores(RULE, worlds.pod(tolerations=[{"key": "k", "operator": "Exists", "effect": effect}]), world)
        for effect in ("", "PreferNoSchedule", "NoSchedule")
    ]
    assert scores == [[0], [0], [1]]


def test_changed_taints_are_seen_and_when_they_were_added_does_not_matter() -> None:
    world = worlds.world([worlds.node("a"), worlds.node("b", taints=[taint()])])
    assert worlds.fitting(RULE, worlds.pod(), world) == ["a"]
    world.put_node(0, worlds.node("a", taints=[taint() | {"timeAdded": "2026-11-16T00:00:00Z"}]))
    world.put_node(1, worlds.node("b"))
    assert worlds.fitting(RULE, worlds.pod(), world) == ["b"]
