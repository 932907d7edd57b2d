"""What a pod asks for must be free; all that is short is told, and whether eviction can help."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.schedulerconfig.pluginargs import NodeResourcesFitArgs
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import Refusal
from tests.unit.placement.rules import worlds

RULE = NodeResourcesFit()
GPU = "nvidia.com/gpu"
MANY = {"pods": "110", "memory": "8"}


def args(**fields: Any) -> NodeResourcesFit:
    return NodeResourcesFit(decode.decode(NodeResourcesFitArgs, fields))


def refusal(
    offered: dict[str, str], used: dict[str, str] | None, asked: dict[str, str], rule: NodeResourcesFit = RULE
) -> Refusal | None:
    there = [] if used is None else [worlds.pod(used)]
    world = worlds.world([worlds.node("n", allocatable=offered)], {"n": there})
    return worlds.refusals(rule, worlds.pod(asked), world)[0]


def told(*reasons: str, unresolvable: bool = False) -> Refusal:
    return Refusal(reasons, unresolvable=unresolvable)


@pytest.mark.parametrize(
    "offered, used, asked, expected",
    [
        (MANY | {"cpu": "4"}, {"cpu": "3"}, {"cpu": "2"}, told("Insufficient cpu")),
        (MANY | {"cpu": "4"}, {}, {"cpu": "5"}, told("Insufficient cpu", unresolvable=True)),
        (
            MANY | {"cpu": "4"},
            {"cpu": "3"},
            {"cpu": "2", "memory": "9"},
            told("Insufficient cpu", "Insufficient memory", unresolvable=True),
        ),
        (MANY, {}, {GPU: "1"}, told(f"Insufficient {GPU}", unresolvable=True)),
        (MANY | {GPU: "4"}, {GPU: "4"}, {GPU: "1"}, told(f"Insufficient {GPU}")),
        (MANY | {"cpu": "4", "pods": "1"}, {"cpu": "4"}, {"cpu": "1"}, told("Too many pods", "Insufficient cpu")),
        ({"pods": "0"}, None, {}, told("Too many pods")),
        (MANY | {"cpu": "4"}, {"cpu": "9"}, {}, None),
        (MANY | {"cpu": "4"}, {"cpu": "9"}, {"memory": "1"}, None),
        (MANY | {"cpu": "4"}, {"cpu": "2"}, {"cpu": "2"}, None),
        (MANY, {}, {"ephemeral-storage": "1"}, told("Insufficient ephemeral-storage", unresolvable=True)),
        (MANY, {}, {"hugepages-2Mi": "2Mi"}, told("Insufficient hugepages-2Mi", unresolvable=True)),
        (MANY, {}, {"unknown": "5"}, None),
        (MANY, {}, {GPU: "0"}, None),
    ],
)
def test_vectors_of_refusals(
    offered: dict[str, str], used: dict[str, str], asked: dict[str, str], expected: Refusal | None
) -> None:
    """Kube-scheduler spec A.12 and more."""
    assert refusal(offered, used, asked) == expected


def test_reasons_come_in_a_fixed_order() -> None:
    asked = {"b.io/x": "1", "a.io/x": "1", "ephemeral-storage": "1", "memory": "1", "cpu": "1"}
    found = refusal({"pods": "0"}, None, asked)
    names = ("cpu", "memory", "ephemeral-storage", "a.io/x", "b.io/x")
    assert found == told("Too many pods", *(f"Insufficient {name}" for name in names), unresolvable=True)


def test_more_kinds_than_bits_are_still_refused() -> None:
    asked = {f"example.com/r{number:02}": "1" for number in range(40)}
    offered = {"pods": "9"} | dict.fromkeys(asked, "1") | {"example.com/r39": "0"}
    found = refusal(offered, None, asked)
    assert found is not None
    assert "Insufficient example.com/r39" in found.reasons


@pytest.mark.parametrize(
    "fields, ignored",
    [
        ({"ignoredResources": [GPU]}, True),
        ({"ignoredResourceGroups": ["nvidia.com"]}, True),
        ({"ignoredResources": ["nvidia.com/other"], "ignoredResourceGroups": ["nvidia"]}, False),
        ({"ignoredResources": ["hugepages-2Mi", "cpu"]}, False),
    ],
    ids=["by name", "by group", "another name", "not extended"],
)
def test_extended_resources_can_be_ignored(fields: dict[str, Any], ignored: bool) -> None:
    found = refusal(MANY, {}, {GPU: "1", "hugepages-2Mi": "2Mi"}, args(**fields))
    assert found is not None
    assert (f"Insufficient {GPU}" not in found.reasons) is ignored
    assert "Insufficient hugepages-2Mi" in found.reasons


def test_one_row_can_be_asked_as_if_pods_were_gone_or_there() -> None:
    node = worlds.node("n", allocatable=MANY | {"cpu": "4", "pods": "2"})
    world = worlds.world([node], {"n": [worlds.pod({"cpu": "2"}), worlds.pod({"cpu": "2"})]})
    prepared = RULE.prepare(worlds.pod({"cpu": "2"}), world)
    assert prepared.refusals[RULE.filter_row(prepared, 0, (), ())] == told("Too many pods", "Insufficient cpu")
    assert RULE.filter_row(prepared, 0, {"n/0"}, ()) == 0
    again = RULE.filter_row(prepared, 0, {"n/0", "n/1", "elsewhere"}, [worlds.pod({"cpu": "3"})])
    assert prepared.refusals[again] == told("Insufficient cpu")


def test_changes_are_seen_row_by_row() -> None:
    world = worlds.world([worlds.node(name, allocatable=MANY | {"cpu": "4"}) for name in "abc"])
    pod = worlds.pod({"cpu": "3"})
    assert worlds.fitting(RULE, pod, world) == ["a", "b", "c"]
    world.put_pod("u", 1, pod)
    assert worlds.fitting(RULE, pod, world) == ["a", "c"]
    world.put_pod("u", 2, pod)
    assert worlds.fitting(RULE, pod, world) == ["a", "b"]
    world.put_node(0, worlds.node("a", allocatable=MANY | {"cpu": "2"}))
    world.drop_pod("u")
    assert worlds.fitting(RULE, pod, world) == ["b", "c"]


def test_made_up_names_are_refused_until_a_node_has_them_and_take_no_room() -> None:
    world = worlds.world([worlds.node("n", allocatable=MANY)])
    columns = len(world.totals.columns)
    for number in range(50):
        assert worlds.fitting(RULE, worlds.pod({f"example.com/r{number}": "1"}), world) == []
    assert len(world.totals.columns) == columns
    world.put_node(0, worlds.node("n", allocatable=MANY | {"example.com/r7": "1"}))
    assert worlds.fitting(RULE, worlds.pod({"example.com/r7": "1"}), world) == ["n"]


def test_a_running_resize_holds_the_larger_amount() -> None:
    status = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}
    shrinking = worlds.pod({"cpu": "1"}, status=status)
    world = worlds.world([worlds.node("n", allocatable=MANY | {"cpu": "5"})], {"n": [shrinking]})
    assert worlds.refusals(RULE, worlds.pod({"cpu": "2"}), world) == [told("Insufficient cpu")]


def test_silent_containers_count_in_the_score_but_not_in_the_filter() -> None:
    offered = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    world = worlds.world([worlds.node("n", allocatable=offered)], {"n": [worlds.pod()] * 9})
    assert worlds.scores(RULE, worlds.pod(), world) == [90]
    assert refusal(offered, {}, {"cpu": "8"}) is None


def test_amounts_for_the_pod_as_a_whole_do_not_enter_its_own_score() -> None:
    """Kube-scheduler spec 1.9: a quirk of the stock scheduler."""
    world = worlds.world([worlds.node("n")])
    whole = worlds.pod(resources={"requests": {"cpu": "32", "memory": "128Gi"}})
    assert worlds.scores(RULE, whole, world) == worlds.scores(RULE, worlds.pod(), world)


def test_a_resource_counted_by_name_enters_the_score_if_asked_for() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": GPU, "weight": 3}]}
    world = worlds.world([worlds.node("n", allocatable={"cpu": "10", GPU: "4", "pods": "9"})])
    rule = args(scoringStrategy=strategy)
    assert worlds.scores(rule, worlds.pod({"cpu": "5", GPU: "1"}), world) == [(50 + 3 * 25) // 4]
    assert worlds.scores(rule, worlds.pod({"cpu": "5"}), world) == [50]


def test_names_that_nobody_counts_do_not_enter_the_score() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu"}, {"name": "pods"}]}
    world = worlds.world([worlds.node("n", allocatable={"cpu": "10", "pods": "9"})])
    assert worlds.scores(args(scoringStrategy=strategy), worlds.pod({"cpu": "5"}), world) == [50]
