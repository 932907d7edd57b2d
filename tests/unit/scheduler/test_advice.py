"""What would make a pod fit: whatever is said has been asked, and comes true when it is done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import structs

from numalign.api.attributes import intent as intents
from numalign.api.decode import quantity
from numalign.api.objects.meta import OwnerReference
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod, Toleration
from numalign.placement.explain.reasons import Absent, AnySuggestion, Freeing, Oversized, Relaxing, Shrinking, Waiting
from numalign.scheduler.choose.choose import Chosen, NoNode
from numalign.scheduler.explain import trial
from tests.unit.scheduler import servers, towns, waitingpods
from tests.unit.scheduler.servers import GPU, on, trainer
from tests.unit.scheduler.towns import Town

ONE_ZONE = ("single-numa-node",)


def carried_out(built: towns.Built, pod: Pod, found: AnySuggestion) -> bool:
    """Whether the pod finds a node in a town where it is so."""
    town = Town(*built)
    match found:
        case Freeing(node=node, pods=pods):
            town.end(pods)
            return town.fits_on(pod, node)
        case Shrinking(resource=resource, amount=amount, nodes=nodes):
            less = trial.resized(pod, "main", resource, amount)
            return all(Town(*built).fits_on(less, node) for node in nodes)
        case Oversized(resource=resource, amount=amount):
            empty = Town(built[0], publisher=built[2])
            if not resource:
                return isinstance(empty.choose(pod), NoNode) and bool(found.policies)
            as_it_is, smaller = empty.choose(pod), empty.choose(trial.resized(pod, "main", resource, amount))
            return isinstance(as_it_is, NoNode) and isinstance(smaller, Chosen)
        case Waiting(pods=pods):
            return any(tenant.metadata.full_name in pods for tenant in town.tenants.values())
    return False


@given(towns.towns, towns.pods)
@settings(max_examples=60)
def test_what_is_suggested_makes_the_pod_fit_when_it_is_carried_out(built: towns.Built, pod: Pod) -> None:
    for found in Town(*built).suggested(pod):
        assert carried_out(built, pod, found), found


@given(towns.towns, towns.pods)
@settings(max_examples=30)
def test_no_pod_is_named_that_could_stay(built: towns.Built, pod: Pod) -> None:
    freed = [each for each in Town(*built).suggested(pod) if isinstance(each, Freeing) and len(each.pods) > 1]
    for found in freed:
        for spared in found.pods:
            fewer = structs.replace(found, pods=tuple(name for name in found.pods if name != spared))
            assert not carried_out(built, pod, fewer)


@given(towns.towns, towns.pods)
@settings(max_examples=20)
def test_one_step_more_would_be_too_much(built: towns.Built, pod: Pod) -> None:
    for found in Town(*built).suggested(pod):
        if isinstance(found, Shrinking) and found.resource == GPU:
            more = trial.resized(pod, "main", GPU, found.amount + 1)
            assert not any(Town(*built).fits_on(more, name) for name in towns.NAMES[: len(built[0])])


SENTENCES: dict[str, tuple[towns.Built, Pod, str]] = {
    "a pod holds what is lacking": (
        (ONE_ZONE, (("a", 3, 4, True), ("a", 4, 4, True)), "agent"),
        trainer("late", gpus=2, cpu="4"),
        "would fit on a without pod p0, which holds 3 nvidia.com/gpu; or on a with 1 nvidia.com/gpu instead of 2",
    ),
    "in one zone": (
        (ONE_ZONE, (("a", 3, 4, True), ("a", 3, 4, True)), "agent"),
        trainer("late", gpus=2, cpu="4"),
        "would fit on a without pod p0, which holds 3 nvidia.com/gpu in zone 0; "
        "or on a with 1 nvidia.com/gpu instead of 2",
    ),
    "several pods": (
        (ONE_ZONE, tuple(("a", 1, 4, True) for _ in range(8)), "agent"),
        trainer("late", gpus=2, cpu="4"),
        "would fit on a without pods p2 and p3, which hold 2 nvidia.com/gpu",
    ),
    "too large for any zone": (
        (ONE_ZONE, (), "agent"),
        trainer("late", gpus=1, cpu="120"),
        "it fits on no node, even when empty: ask for at most 96 CPUs instead of 120 (which would fit on a now), "
        "or use nodes with policy best-effort",
    ),
    "too large, and less would fit now": (
        (ONE_ZONE, (("a", 3, 4, True), ("a", 2, 4, True)), "agent"),
        trainer("late", gpus=5),
        "it fits on no node, even when empty: ask for at most 4 nvidia.com/gpu instead of 5 "
        "(2 would fit on a now), or use nodes with policy best-effort",
    ),
}


@pytest.mark.parametrize("built, pod, sentence", SENTENCES.values(), ids=SENTENCES)
def test_one_line_says_what_would_help(built: towns.Built, pod: Pod, sentence: str) -> None:
    assert Town(*built).line(pod) == sentence


def test_a_pod_that_fits_needs_no_advice() -> None:
    assert Town().line(trainer("p")) == ""


def test_no_policy_is_advised_that_would_not_make_the_node_larger() -> None:
    town = Town(ONE_ZONE)
    small = servers.node("a")
    offered = {**small.status.allocatable, "cpu": quantity.parse("100")}
    town.cluster.node(structs.replace(small, status=structs.replace(small.status, allocatable=offered)))
    assert town.line(trainer("p", gpus=1, cpu="150")) == (
        "it fits on no node, even when empty: ask for at most 96 CPUs instead of 150 (which would fit on a now)"
    )


def test_a_resource_that_no_node_has_is_named() -> None:
    pod = waitingpods.pod("p", waitingpods.asking(**{"example.com/fpga": "1"}))
    assert Town().suggested(pod) == (Absent(resource="example.com/fpga"),)
    assert Town().line(pod) == "no node has any example.com/fpga"


def test_pods_that_would_come_back_are_not_asked_to_leave() -> None:
    town = Town(ONE_ZONE)
    kept = trainer("agent", gpus=4)
    owner = OwnerReference(kind="DaemonSet", name="agents", controller=True)
    kept = structs.replace(kept, metadata=structs.replace(kept.metadata, owner_references=(owner,)))
    town.put(kept, "a")
    town.put(trainer("train", gpus=4), "a")
    found = [each for each in town.suggested(trainer("late", gpus=4)) if isinstance(each, Freeing)]
    assert [each.pods for each in found] == [("default/train",)]


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a taint": (
        {"taints": (Taint(key="gpu", value="yes", effect="NoSchedule"), Taint(key="b", effect="NoExecute"))},
        {},
        "would fit on a if it tolerated gpu=yes:NoSchedule and b:NoExecute",
    ),
    "a cordon": ({"cordoned": True}, {}, "would fit on a if it were uncordoned"),
    "a selector": (
        {},
        {"nodeSelector": {"disk": "fast"}},
        "would fit on a without its node selector disk=fast, which no node has",
    ),
    "a node that is not Ready": (
        {"taints": (Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule"),)},
        {},
        "would fit on a if it were Ready",
    ),
    "a condition of the node": (
        {"taints": (Taint(key="node.kubernetes.io/disk-pressure", effect="NoSchedule"),)},
        {},
        "would fit on a without taint node.kubernetes.io/disk-pressure:NoSchedule",
    ),
    "a port": (
        {},
        {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        "would fit on a without pod web",
    ),
}


@pytest.mark.parametrize("node, spec, sentence", CHANGES.values(), ids=CHANGES)
def test_where_a_rule_is_in_the_way_the_change_is_named(
    node: dict[str, Any], spec: dict[str, Any], sentence: str
) -> None:
    town = Town(ONE_ZONE)
    town.cluster.node(servers.node("a", **node))
    web = waitingpods.pod("web", {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]})
    town.cluster.pod(on(web, "a", phase="Running"), 0.0)
    assert town.line(trainer("late", **spec)) == sentence


def test_uncordoning_a_node_comes_before_taking_a_running_pod_away() -> None:
    town = Town(ONE_ZONE * 2, (("a", 4, 4, True), ("a", 4, 4, True)))
    town.cluster.node(servers.node("b", cordoned=True))
    assert town.line(trainer("late", gpus=4)) == (
        "would fit on b if it were uncordoned; or on a without pod p0, which holds 4 nvidia.com/gpu"
    )


def test_a_taint_in_the_way_is_named_beside_the_pods_that_could_go() -> None:
    town = Town(ONE_ZONE * 2, (("a", 4, 4, True), ("a", 4, 4, True)))
    town.cluster.node(servers.node("b", taints=(Taint(key="gpu", value="broken", effect="NoExecute"),)))
    assert town.line(trainer("late", gpus=4)).endswith("; or on b if it tolerated gpu=broken:NoExecute")


def test_all_policies_under_which_a_large_pod_would_fit_are_named() -> None:
    assert Town(ONE_ZONE).line(trainer("late", gpus=8, cpu="100")) == (
        "it fits on no node, even when empty: use nodes with policy restricted or best-effort"
    )


def test_what_is_tolerated_already_is_not_asked_for() -> None:
    town = Town(ONE_ZONE)
    taints = (Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="NoSchedule"))
    town.cluster.node(servers.node("a", taints=taints))
    pod = trainer("late")
    pod = structs.replace(pod, spec=structs.replace(pod.spec, tolerations=(Toleration(key="a", operator="Exists"),)))
    assert town.line(pod) == "would fit on a if it tolerated b:NoSchedule"


def test_a_wish_that_no_node_keeps_is_named() -> None:
    pod = trainer("late")
    wishing = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={intents.STRICTNESS: "require"}))
    assert Town(("none",)).suggested(wishing) == (
        Relaxing(
            plugin="NodeResourceTopologyMatch", change=f"without its annotation {intents.STRICTNESS}", nodes=("a",)
        ),
    )


def test_room_that_is_promised_is_not_given_away() -> None:
    town = Town(ONE_ZONE, (("a", 4, 4, True), ("a", 4, 4, True)))
    town.around.nominations.put(trainer("preemptor", gpus=4), "a")
    freed = [each.pods for each in town.suggested(trainer("late", gpus=4)) if isinstance(each, Freeing)]
    assert freed == [("default/p0", "default/p1")]


def test_the_container_is_named_where_there_are_several() -> None:
    def container(name: str, cpu: str) -> dict[str, Any]:
        wants = {"cpu": cpu, "memory": "1Gi"}
        return {"name": name, "resources": {"requests": wants, "limits": wants}}

    pod = waitingpods.pod("late", {"containers": [container("left", "60"), container("right", "120")]})
    assert "ask for at most 96 CPUs instead of 120 in container right" in Town(ONE_ZONE).line(pod)
