"""No topology domain gets more than its share of like pods."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.placement.rules.pods.podtopologyspread import MISSING_LABEL, TOO_MANY
from tests.unit.placement.rules import neighbours, worlds
from tests.unit.placement.rules.neighbours import HOST, ZONE, constraint, in_zones, pod, web

# Counts by zone, whether the pod is counted itself, the constraint, and the zones that are left (kube-scheduler A.7).
SKEWS: dict[str, tuple[dict[str, int], bool, dict[str, Any], str]] = {
    "only the emptiest": ({"a": 2, "b": 1, "c": 0}, True, {}, "c"),
    "all even": ({"a": 1, "b": 1}, True, {}, "ab"),
    "too few domains": ({"a": 1, "b": 1}, True, {"minDomains": 3}, ""),
    "too few domains but empty": ({"a": 0, "b": 0}, True, {"minDomains": 3}, "ab"),
    "not one of the counted": ({"a": 3, "b": 1}, False, {"maxSkew": 2}, "ab"),
    "more than the skew allows": ({"a": 4, "b": 1}, False, {"maxSkew": 2}, "b"),
}


@pytest.mark.parametrize("counts, is_own, fields, left", SKEWS.values(), ids=SKEWS)
def test_domains_within_the_skew_are_left(
    counts: dict[str, int], is_own: bool, fields: dict[str, Any], left: str
) -> None:
    there = in_zones(**counts)
    asking = pod({"app": "web" if is_own else "other"}, topologySpreadConstraints=[constraint(**fields)])
    assert worlds.fitting(there.spreading(), asking, there.world) == list(left)


def test_reasons_distinguish_missing_labels_from_too_many_pods() -> None:
    there = neighbours.place({"a": {ZONE: "a"}, "b": {ZONE: "b"}, "none": {}}, {"a": [web()]})
    asking = web(topologySpreadConstraints=[constraint()])
    assert worlds.refusals(there.spreading(), asking, there.world) == [TOO_MANY, None, MISSING_LABEL]
    assert MISSING_LABEL.reasons[0].startswith(TOO_MANY.reasons[0])


def test_the_first_constraint_that_fails_gives_the_reason() -> None:
    there = neighbours.place({"a": {ZONE: "a"}, "b": {ZONE: "b", HOST: "b"}}, {"b": [web()]})
    asking = web(topologySpreadConstraints=[constraint(HOST), constraint(ZONE)])
    # Only nodes with both labels count, so that zone b is the emptiest of one.
    assert worlds.refusals(there.spreading(), asking, there.world) == [MISSING_LABEL, None]


COUNTED = {
    "like pods": ([web(), web()], False),
    "another namespace": ([web(namespace="other")] * 2, True),
    "other labels": ([pod({"app": "db"})] * 2, True),
    "pods on their way out": ([web(leaving=True)] * 2, True),
}


@pytest.mark.parametrize("pods, fits", COUNTED.values(), ids=COUNTED)
def test_only_staying_pods_of_the_namespace_that_match_count(pods: list[Any], fits: bool) -> None:
    there = neighbours.place({"a": {ZONE: "a"}, "b": {ZONE: "b"}}, {"a": pods})
    asking = web(topologySpreadConstraints=[constraint()])
    assert ("a" in worlds.fitting(there.spreading(), asking, there.world)) is fits


SELECTORS = {
    "an empty one counts nothing": ({"labelSelector": {}}, ["a", "b"]),
    "none counts nothing": ({"labelSelector": None}, ["a", "b"]),
    "with a label value of the pod": ({"matchLabelKeys": ["version"]}, ["a", "b"]),
    "with a label that the pod lacks": ({"matchLabelKeys": ["track"]}, ["b"]),
    "none stays none": ({"labelSelector": None, "matchLabelKeys": ["version"]}, ["a", "b"]),
}


@pytest.mark.parametrize("fields, left", SELECTORS.values(), ids=SELECTORS)
def test_what_the_selector_takes_in(fields: dict[str, Any], left: list[str]) -> None:
    there = in_zones(a=2, b=0)
    asking = pod({"app": "web", "version": "2"}, topologySpreadConstraints=[constraint(**fields)])
    assert worlds.fitting(there.spreading(), asking, there.world) == left


POLICIES = {
    "affinity leaves out zone b": ({}, {"nodeSelector": {"disk": "ssd"}}, ["a", "b"]),
    "affinity ignored": ({"nodeAffinityPolicy": "Ignore"}, {"nodeSelector": {"disk": "ssd"}}, ["b"]),
    "taints are ignored": ({}, {}, ["b"]),
    "taints leave out zone b": ({"nodeTaintsPolicy": "Honor"}, {}, ["a", "b"]),
    "taints are tolerated": (
        {"nodeTaintsPolicy": "Honor"},
        {"tolerations": [{"key": "busy", "operator": "Exists"}]},
        ["b"],
    ),
}


@pytest.mark.parametrize("fields, spec, left", POLICIES.values(), ids=POLICIES)
def test_policies_say_which_nodes_count(fields: dict[str, Any], spec: dict[str, Any], left: list[str]) -> None:
    busy = [{"key": "busy", "effect": "NoSchedule"}]
    nodes = [worlds.node("a", labels={ZONE: "a", "disk": "ssd"}), worlds.node("b", labels={ZONE: "b"}, taints=busy)]
    there = neighbours.Place(worlds.world(nodes, {"a": [web(), web(), web()]}))
    asking = web(topologySpreadConstraints=[constraint(**fields)], **spec)
    # A domain that does not count has no pods, so it is not this rule that refuses it.
    assert worlds.fitting(there.spreading(), asking, there.world) == left


def test_taking_pods_away_makes_room_and_adding_them_takes_it() -> None:
    there = in_zones(a=1, b=0)
    rule = there.spreading()
    prepared = rule.prepare(web(topologySpreadConstraints=[constraint()]), there.world)
    assert prepared is not None
    tries = [rule.filter_row(prepared, row, *what) for row, *what in ((0, (), ()), (0, ["a/0"], ()), (1, (), [web()]))]
    assert tries == [1, 0, 0]
    assert rule.filter_row(prepared, 1, (), [web(), web()]) == 1


def test_what_if_counts_pods_that_leave_though_counting_does_not() -> None:
    there = neighbours.place({"a": {ZONE: "a"}, "b": {ZONE: "b"}}, {"a": [web(), web(leaving=True)]})
    rule = there.spreading()
    prepared = rule.prepare(web(topologySpreadConstraints=[constraint()]), there.world)
    assert prepared is not None
    assert [rule.filter_row(prepared, 0, removed, ()) for removed in ([], ["a/1"])] == [1, 0]


def test_pods_without_constraints_are_left_alone() -> None:
    there = in_zones(a=1)
    asking = web(topologySpreadConstraints=[neighbours.should()])
    assert there.spreading().prepare(asking, there.world) is None
