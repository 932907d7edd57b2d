"""What every node says to a pod, and nothing decided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from msgspec import structs

from numalign.api.attributes import intent as intents
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod
from numalign.placement.explain import answers
from numalign.scheduler.explain import explanations
from numalign.scheduler.profiles import ZONES
from tests.unit.scheduler import servers, towns, waitingpods
from tests.unit.scheduler.servers import Servers, on, trainer
from tests.unit.scheduler.towns import Town


@given(towns.towns, towns.pods)
@settings(max_examples=60)
def test_a_node_is_named_as_fitting_just_where_the_scheduler_would_place_the_pod(built: towns.Built, pod: Pod) -> None:
    found = Town(*built).explained(pod)
    placed = {name for name in towns.NAMES[: len(built[0])] if Town(*built).fits_on(pod, name)}
    assert set(found.fitting) == placed
    assert set(found.refused) == set(towns.NAMES[: len(built[0])]) - placed


@given(towns.towns, towns.pods)
@settings(max_examples=15)
def test_asking_changes_nothing(built: towns.Built, pod: Pod) -> None:
    town = Town(*built)
    first = town.explained(pod)
    town.suggested(pod)
    assert town.explained(pod) == first == Town(*built).explained(pod)


def test_causes_of_one_kind_are_one_with_the_best_numbers_of_any_node() -> None:
    town = Town(["single-numa-node"] * 3, [("a", 3, 4, True), ("a", 3, 4, True), ("b", 3, 4, True), ("b", 2, 4, True)])
    town.cluster.node(servers.node("c", taints=(Taint(key="x", effect="NoSchedule"),)))
    found = town.explained(trainer("late", gpus=4))
    assert [(cause.nodes, cause.answer.sentence) for cause in found.causes] == [
        (("a", "b"), "the pod requests 4 nvidia.com/gpu, at most 3 left on a node"),
        (("c",), "untolerated taint x:NoSchedule"),
    ]
    assert found.headline == "0 of 3 nodes can take the pod"


def test_a_pod_that_no_zone_could_ever_hold_is_called_so_before_anything_else() -> None:
    found = Town(["single-numa-node"] * 2, [("a", 3, 4, True), ("b", 2, 4, True)]).explained(trainer("late", gpus=8))
    assert found.headline == "none of 2 nodes can take the pod, even when empty"
    assert [cause.answer.sentence for cause in found.causes] == [
        "container main needs 8 nvidia.com/gpu in one NUMA zone, best zone has 4, even when empty"
    ]
    assert found.never is not None
    assert [(each.zone, each.free) for each in found.never.named_lacks[0].by_zone] == [(0, 4), (1, 4)]


def test_a_taint_does_not_hide_that_a_node_is_too_small() -> None:
    town = Town(["single-numa-node"])
    town.cluster.node(servers.node("a", taints=(Taint(key="x", effect="NoSchedule"),)))
    assert town.explained(trainer("late", gpus=8)).never is not None


@given(towns.towns, towns.pods)
@settings(max_examples=40)
def test_never_means_that_the_empty_node_refuses_too(built: towns.Built, pod: Pod) -> None:
    found = Town(*built).explained(pod)
    for node in (name for name, answer in found.refused.items() if answer.is_never):
        assert not Town(built[0], publisher=built[2]).fits_on(pod, node)


@given(towns.towns, towns.pods)
@settings(max_examples=30)
def test_no_node_fits_even_when_empty_just_where_each_says_so(built: towns.Built, pod: Pod) -> None:
    town = Town(*built)
    asked, rows = answers.of(town.cluster.engine, pod), town.cluster.world.node_rows
    alone = [asked.never(row) for row in rows.tolist()]
    found = asked.never_on_any(rows)
    assert (found is not None) == all(each is not None for each in alone)
    assert found is None or found.kind in [each.kind for each in alone if each is not None]


TERMS = [
    {
        "matchExpressions": [
            {"key": "gpu", "operator": "In", "values": ["h100", "h200"]},
            {"key": "ib", "operator": "Exists"},
        ]
    },
    {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["4"]}]},
]
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS}}}
OBSTACLES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a cordon": ({"cordoned": True}, {}, "cordoned (SchedulingDisabled)"),
    "taints": (
        {"taints": (Taint(key="gpu", value="broken", effect="NoExecute"), Taint(key="b", effect="NoSchedule"))},
        {},
        "untolerated taints gpu=broken:NoExecute and b:NoSchedule",
    ),
    "a label": ({}, {"nodeSelector": {"gpu": "h100"}}, "does not match the pod's node selector or affinity: gpu=h100"),
    "alternatives": (
        {},
        {"affinity": AFFINITY},
        "does not match the pod's node selector or affinity: gpu in (h100, h200),ib or size>4",
    ),
}


@pytest.mark.parametrize("node, spec, sentence", OBSTACLES.values(), ids=OBSTACLES)
def test_what_is_written_on_a_node_and_in_the_way_is_named(
    node: dict[str, Any], spec: dict[str, Any], sentence: str
) -> None:
    town = Town(["single-numa-node"])
    town.cluster.node(servers.node("a", **node))
    assert town.explained(waitingpods.pod("p", waitingpods.asking() | spec)).refused["a"].sentence == sentence


def test_the_node_that_lacks_least_is_the_closest() -> None:
    town = Town(
        ["single-numa-node"] * 2, [("a", 1, 80, True), ("a", 1, 80, True), ("b", 1, 60, True), ("b", 1, 60, True)]
    )
    assert town.explained(trainer("late", cpu="50")).closest == ("b", "a")


def test_each_zone_shows_what_is_free_and_short() -> None:
    town = Town(["single-numa-node"], [("a", 3, 4, True), ("a", 2, 4, True)])
    reason = town.explained(trainer("late", gpus=3)).refused["a"].reason
    assert reason is not None
    assert [(each.zone, each.free, each.short) for each in reason.named_lacks[0].by_zone] == [(0, 1, 2), (1, 2, 1)]


def test_a_rule_that_refuses_the_pod_as_such_is_the_problem() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
    found = Town().explained(waitingpods.pod("p", claims))
    assert found.problem is not None
    assert found.headline.startswith("pod uses resource claims")
    assert not found.fits


def test_annotations_that_make_no_sense_are_the_problem() -> None:
    pod = trainer("p")
    broken = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={intents.STRICTNESS: "very"}))
    assert "is not one of require, prefer, none" in Town().explained(broken).headline


def test_without_nodes_there_is_no_answer() -> None:
    assert Town(()).explained(trainer("p")).headline == "no nodes available to schedule pods"


def test_a_wish_that_is_not_kept_is_a_note() -> None:
    pod = trainer("p")
    wishing = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={intents.STRICTNESS: "prefer"}))
    found = Town(["best-effort"]).explained(wishing)
    assert found.fitting == ("a",)
    assert found.notes[0].startswith("1 node: allowed, but the pod's annotations ask for strictness prefer")


def test_nodes_that_rejected_equal_pods_are_named() -> None:
    town = Town(["single-numa-node"])
    town.around.rejections.rejected(town.cluster.engine.shape(trainer("p")).number, "a", "OutOfcpu", 0.0)
    assert town.explained(trainer("p")).refused["a"].texts == ("node(s) turned away pods like this one (OutOfcpu)",)


def test_room_that_is_promised_to_another_is_not_free() -> None:
    town = Town(["single-numa-node"])
    nominee = trainer("preemptor", gpus=8)
    town.around.nominations.put(nominee, "a")
    assert town.explained(trainer("p", gpus=1)).fitting == ()


@pytest.mark.parametrize("pending", [0, 1])
def test_many_nodes_that_hang_on_pods_to_come_are_not_all_tried(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "MOST_TRIALS", 1)
    tenants = [(name, 1, 20, False) for name in "abc" for _ in range(2)] if pending else []
    tenants += [(name, 2, 10, False) for name in "abc"] if pending else []
    found = Town(["single-numa-node"] * 3, tenants).explained(trainer("late", gpus=1))
    assert len(found.fitting) + len(found.untried) == 3
    assert bool(found.untried) == bool(pending)
    assert found.fits


def test_the_plugin_s_words_are_kept_beside_ours() -> None:
    town = Town(["single-numa-node"], [("a", 3, 4, True), ("a", 3, 4, True)])
    answer = town.explained(trainer("late", gpus=2)).refused["a"]
    assert (answer.plugin, answer.texts) == (ZONES, ("cannot align container",))
    assert answer.sentence == "container main needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1"


def test_a_node_without_a_report_is_allowed_and_noted() -> None:
    cluster = Servers("a", reports=False)
    cluster.cluster.graces_ended(60.0)
    cluster.cluster.pod(on(trainer("p"), "a", phase="Running"), 0.0)
    around = Town().around
    found = explanations.explained(trainer("late"), cluster.profile, structs.replace(around, cluster=cluster.cluster))
    assert found.fitting == ("a",)
    assert found.notes == ["1 node: no usable topology report; alignment not looked at"]
    assert np.flatnonzero(cluster.cluster.world.present).tolist() == [0]
