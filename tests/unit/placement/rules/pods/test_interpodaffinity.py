"""Pods are near the pods they need, and away from those they or the others cannot stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.rules.pods.interpodaffinity import NOT_AWAY, NOT_NEAR, UNWANTED, AffinityScores
from numalign.placement.rules.rule import Refusal
from tests.unit.placement.rules import neighbours, worlds
from tests.unit.placement.rules.neighbours import HOST, ZONE, Place, avoiding, away, liking, near, pod, term, web

TWO_ZONES = {"a": {ZONE: "a", HOST: "a"}, "b": {ZONE: "b", HOST: "b"}, "none": {}}
DB = {"matchLabels": {"app": "db"}}
BOTH = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


def two_zones(*on_a: Pod, on_b: tuple[Pod, ...] = ()) -> Place:
    there = neighbours.place(TWO_ZONES, {"a": on_a, "b": on_b})
    there.around.namespaces.put("default", {"team": "x"})
    there.around.namespaces.put("other", {"team": "y"})
    return there


# What is on a, what the pod asks for, and what a, b and the node without labels say (kube-scheduler spec A.13).
CASES: dict[str, tuple[list[Pod], dict[str, Any], list[Refusal | None]]] = {
    "near one that is there": ([web()], near(term()), [None, NOT_NEAR, NOT_NEAR]),
    "near oneself, the first": ([], near(term()), [None, None, NOT_NEAR]),
    "near others, none there": ([], near(term(labelSelector=DB)), [NOT_NEAR, NOT_NEAR, NOT_NEAR]),
    "two terms met by one pod": ([web()], near(term(), term(HOST, labelSelector=BOTH)), [None, NOT_NEAR, NOT_NEAR]),
    "two terms, each met by another pod": (
        [pod({"app": "db"})],
        near(term(), term(labelSelector=BOTH)),
        [None, None, NOT_NEAR],
    ),
    "away from one that is there": ([web()], away(term()), [NOT_AWAY, None, None]),
    "away, by a label nobody has": ([web()], away(term("rack")), [None, None, None]),
    "not wanted by one that is there": ([pod({"app": "db"}, affinity=away(term()))], {}, [UNWANTED, None, None]),
    "wanted away by one that means others": ([web(affinity=away(term(labelSelector=DB)))], {}, [None, None, None]),
    "near one that is leaving": ([web(leaving=True)], near(term()), [None, NOT_NEAR, NOT_NEAR]),
    "refused twice, nearness first": (
        [pod({"app": "db"}, affinity=away(term()))],
        near(term(labelSelector={"matchLabels": {"app": "cache"}})),
        [NOT_NEAR, NOT_NEAR, NOT_NEAR],
    ),
}


@pytest.mark.parametrize("on_a, affinity, expected", CASES.values(), ids=CASES)
def test_terms_are_held_against_domains(
    on_a: list[Pod], affinity: dict[str, Any], expected: list[Refusal | None]
) -> None:
    there = two_zones(*on_a)
    assert worlds.refusals(there.affinity(), web(affinity=affinity), there.world) == expected


NAMESPACES = {
    "its own": ({}, "default", True),
    "not others": ({}, "other", False),
    "those that are listed": ({"namespaces": ["other"]}, "other", True),
    "only those that are listed": ({"namespaces": ["other"]}, "default", False),
    "those that a selector finds": ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, "other", True),
    "not those that it does not find": ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, "default", False),
    "listed and found": ({"namespaces": ["third"], "namespaceSelector": {"matchLabels": {"team": "y"}}}, "other", True),
    "all": ({"namespaceSelector": {}}, "third", True),
    "an unknown one is not found": (
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}},
        "third",
        False,
    ),
}


@pytest.mark.parametrize("fields, namespace, is_meant", NAMESPACES.values(), ids=NAMESPACES)
def test_a_term_means_pods_of_some_namespaces(fields: dict[str, Any], namespace: str, is_meant: bool) -> None:
    there = two_zones(web(namespace=namespace))
    found = worlds.refusals(there.affinity(), web(affinity=away(term(**fields))), there.world)
    assert (found[0] is not None) is is_meant


def test_terms_of_others_use_the_labels_of_a_namespace_that_was_not_seen() -> None:
    unlabelled: dict[str, Any] = {
        "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    }
    there = two_zones(pod({"app": "db"}, affinity=away(term(**unlabelled))))
    assert worlds.refusals(there.affinity(), web(namespace="third"), there.world) == [UNWANTED, None, None]
    assert there.affinity().prepare(web(), there.world) is None


def test_the_pod_that_objects_can_be_taken_away() -> None:
    there = two_zones(pod({"app": "db"}, affinity=away(term())))
    rule = there.affinity()
    prepared = rule.prepare(web(), there.world)
    assert prepared is not None
    objecting = pod({}, affinity=away(term(HOST)))
    tries = [rule.filter_row(prepared, row, *what) for row, *what in ((0, ["a/0"], ()), (1, (), [objecting]))]
    assert [code and prepared.refusals[code] for code in tries] == [0, UNWANTED]


# What is on a, how the pod or the others feel, and the raw scores of a, b and the node without labels.
SCORES: dict[str, tuple[list[Pod], dict[str, Any], list[int] | None]] = {
    "likes": ([web(), web()], liking(5, term()), [10, 0, 0]),
    "avoids": ([web(), web()], avoiding(5, term()), [-10, 0, 0]),
    "is liked": ([pod({}, affinity=liking(7, term()))], {}, [7, 0, 0]),
    "is avoided": ([pod({}, affinity=avoiding(7, term()))], {}, [-7, 0, 0]),
    "is needed": ([pod({}, affinity=near(term()))], {}, [3, 0, 0]),
    "is forbidden": ([pod({}, affinity=away(term()))], {}, None),
    "nobody feels anything": ([web()], {}, None),
    "by a label nobody has": ([web()], liking(5, term("rack")), None),
}


@pytest.mark.parametrize("on_a, affinity, expected", SCORES.values(), ids=SCORES)
def test_feelings_add_up_in_domains(on_a: list[Pod], affinity: dict[str, Any], expected: list[int] | None) -> None:
    there = two_zones(*on_a)
    assert worlds.scores(there.affinity(hardPodAffinityWeight=3), web(affinity=affinity), there.world) == expected


def test_a_profile_can_look_at_pods_with_preferences_alone() -> None:
    there = two_zones(pod({}, affinity=liking(7, term())), web())
    rule = there.affinity(ignorePreferredTermsOfExistingPods=True)
    assert worlds.scores(rule, web(), there.world) is None
    # With preferences of its own, those of the others count again.
    assert worlds.scores(rule, web(affinity=liking(1, term())), there.world) == [8, 0, 0]


NORMALISED = {
    "below and above zero": ([-30, 10, 10, 50], [0, 50, 50, 100]),
    "below zero": ([-7, -3, 0], [0, 57, 100]),
    "cut, not rounded": ([0, 1, 2, 3, 7], [0, 14, 28, 42, 100]),
    "all the same": ([3, 3], [0, 0]),
}


@pytest.mark.parametrize("raw, expected", NORMALISED.values(), ids=NORMALISED)
def test_scores_are_stretched_from_least_to_most(raw: list[int], expected: list[int]) -> None:
    rule = two_zones().affinity()
    assert rule.normalized(AffinityScores({}), np.array(raw)).tolist() == expected
