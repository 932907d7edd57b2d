"""What the nodes would say if something were different: the same as when it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.api.objects.node import Taint
from numalign.scheduler.explain import counterfactual, explanations
from numalign.scheduler.explain.counterfactual import Change, Resizing
from tests.unit.scheduler import servers, towns
from tests.unit.scheduler.servers import GPU, trainer
from tests.unit.scheduler.towns import Town

ONE_ZONE = ("single-numa-node",)
BUSY: towns.Built = (ONE_ZONE, (("a", 3, 4, True), ("a", 3, 4, True)), "agent")


def asked(town: Town, pod: Any, **change: Any) -> explanations.Explained:
    return counterfactual.asked(pod, Change(**change), town.profile, town.around)


@given(towns.towns, towns.pods, st.lists(st.integers(0, 8), unique=True))
@example(((ONE_ZONE), (("a", 0, 39, False), ("a", 0, 56, False)), "agent"), trainer("late", gpus=0, cpu="41"), [0])
@settings(max_examples=40)
def test_without_pods_the_nodes_answer_as_once_these_have_ended(built: Any, pod: Any, places: list[int]) -> None:
    town, later = Town(*built), Town(*built)
    names = [each.metadata.full_name for each in town.tenants.values()]
    gone = [names[place] for place in places if place < len(names)]
    found = asked(town, pod, gone=tuple(gone))
    later.end(gone)
    then = later.explained(pod)
    # An answer that is given before its time may be less certain, and is never wrong.
    assert set(found.fitting) <= set(then.fitting) | set(then.untried)
    if all(tenant[3] for tenant in built[1]) and built[2] == "agent":
        assert found.fitting == then.fitting


@given(towns.towns, towns.pods, st.sampled_from(towns.POLICIES))
@settings(max_examples=40)
def test_under_another_policy_the_nodes_answer_as_nodes_that_have_it(built: Any, pod: Any, policy: Any) -> None:
    policies, _, publisher = built
    found = asked(Town(policies, (), publisher), pod, policy=policy)
    there = Town((policy,) * len(policies), (), publisher).explained(pod)
    assert found.fitting == there.fitting


@given(towns.towns, towns.pods)
@settings(max_examples=30)
def test_nothing_is_charged(built: Any, pod: Any) -> None:
    town = Town(*built)
    before = town.explained(pod)
    asked(town, pod, gone=tuple(each.metadata.full_name for each in town.tenants.values()), policy="restricted")
    after = town.explained(pod)
    assert (before.fitting, before.headline) == (after.fitting, after.headline)


def test_a_pod_that_asks_for_less_is_asked_of_all_nodes() -> None:
    pod = trainer("late", gpus=2, cpu="4")
    assert asked(Town(*BUSY), pod).fitting == ()
    assert asked(Town(*BUSY), pod, resized=(Resizing("main", GPU, 1),)).fitting == ("a",)


def test_a_refusal_under_a_changed_policy_has_its_own_reason() -> None:
    found = asked(Town(*BUSY), trainer("late", gpus=2, cpu="4"), scope="pod")
    assert found.refused["a"].sentence == "the pod needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1"


def test_a_weaker_policy_lets_the_pod_in() -> None:
    assert asked(Town(*BUSY), trainer("late", gpus=2, cpu="4"), node="a", policy="best-effort").fitting == ("a",)


def test_only_the_named_node_has_the_other_policy() -> None:
    built = (ONE_ZONE * 2, (("a", 3, 4, True), ("a", 3, 4, True), ("b", 3, 4, True), ("b", 3, 4, True)), "agent")
    found = asked(Town(*built), trainer("late", gpus=2, cpu="4"), node="b", policy="restricted")
    assert found.fitting == ()
    found = asked(Town(*built), trainer("late", gpus=2, cpu="4"), node="b", policy="none")
    assert found.fitting == ("b",)


def test_a_taint_stands_in_the_way_whatever_the_policy() -> None:
    town = Town(*BUSY)
    town.cluster.node(servers.node("a", taints=(Taint(key="gpu", value="yes", effect="NoSchedule"),)))
    found = asked(town, trainer("late", gpus=2, cpu="4"), policy="none")
    assert found.refused["a"].sentence == "untolerated taint gpu=yes:NoSchedule"


def test_what_a_plugin_refuses_keeps_its_amounts_whatever_the_policy() -> None:
    found = asked(Town(*BUSY), trainer("late", gpus=4), policy="none")
    assert found.refused["a"].sentence == "the pod requests 4 nvidia.com/gpu, at most 2 left on a node"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a pod": ({"gone": ("default/nobody",)}, "Pod default/nobody"),
    "a container": ({"resized": (Resizing("side", GPU, 1),)}, "has no container 'side'"),
    "a resource": ({"resized": (Resizing("main", "example.com/fpga", 1),)}, "does not ask for 'example.com/fpga'"),
    "a node": ({"policy": "none", "node": "z"}, "Node z"),
}


@pytest.mark.parametrize("change, said", WRONG.values(), ids=WRONG)
def test_what_is_not_there_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadObject, match=said):
        asked(Town(*BUSY), trainer("late"), **change)
