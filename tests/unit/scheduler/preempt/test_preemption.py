"""Whom a pod that found no node may push aside, and when it may not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod, PodCondition
from numalign.kubelet import admission
from numalign.placement.explain import whatif
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.preempt.preemption import BY_SCHEDULER, DISRUPTED, Nomination, NotPreempted
from tests.unit.scheduler import servers
from tests.unit.scheduler.choose.test_plugins_budgets import budget
from tests.unit.scheduler.preempting import Fixed, Town
from tests.unit.scheduler.servers import trainer

START = "2026-01-01T00:00:00Z"


def high(gpus: int, **spec: Any) -> Pod:
    return trainer("high", gpus=gpus, **{"priority": 100, **spec})


def full(*nodes: str, gpus: int = 1, **spec: Any) -> Town:
    """Every GPU of these nodes is taken by pods of priority 0."""
    town = Town(*nodes)
    for number in range(8 // gpus * len(nodes)):
        town.run(trainer(f"low{number}", gpus=gpus, cpu="1", **spec), start_time=START)
    return town


def test_as_many_as_are_needed_have_to_go_all_of_one_zone() -> None:
    town = full("a")
    node, names = town.victims(high(3))
    holders = whatif.of(town.cluster.engine, high(3), town.cluster.engine.shape(high(3))).holders(0)
    zones = {holders[f"uid-{name}"] for name in names}
    assert (node, len(names), len(zones)) == ("a", 3, 1)


def test_no_pod_is_evicted_where_it_would_not_help() -> None:
    # Six GPUs are free together once everybody has left, but no zone has more than four.
    message = "0/2 nodes are available: 2 cannot align the pod even without pods of lower priority."
    assert full("a", "b").why_not(high(6)) == message


def test_no_pod_is_evicted_from_a_node_that_refuses_in_any_case() -> None:
    town = full("a", "b")
    town.kept_off = ("a",)
    assert {town.victims(high(2))[0] for _ in range(4)} == {"b"}
    town.kept_off = ("a", "b")
    assert town.why_not(high(2)) == "0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def test_a_pod_that_is_too_large_for_any_node_gets_that_message() -> None:
    assert full("a").why_not(high(9)) == "0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def test_pods_worth_as_much_are_left_alone() -> None:
    town = full("a", priority=100)
    assert town.why_not(high(1)) == "0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_nodes_that_refuse_for_good_are_not_looked_at() -> None:
    town = full("a", "b")
    town.cluster.node(servers.node("b", taints=(Taint(key="x", effect="NoSchedule"),)))
    assert town.victims(high(4))[0] == "a"
    assert town.why_not(high(5)).endswith(
        "1 Preemption is not helpful for scheduling, 1 cannot align the pod even without pods of lower priority."
    )


def test_what_is_short_without_all_of_them_is_named() -> None:
    town = Town("a")
    town.run(trainer("equal", gpus=3, cpu="90", priority=100), start_time=START)
    town.run(trainer("low", gpus=1, cpu="90"), start_time=START)
    assert town.why_not(high(1, cpu="110")) == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_may_be_polite() -> None:
    assert full("a").why_not(high(1, preemptionPolicy="Never")) == "not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize("reason, eligible", [(BY_SCHEDULER, False), ("EvictionByEvictionAPI", True)])
def test_while_its_victims_terminate_a_pod_preempts_no_other(reason: str, eligible: bool) -> None:
    town = full("a", "b")
    pod = high(1)
    town.nominations.put(pod, "a")
    victim = next(each for each in town.cluster.pods_on("a"))
    leaving = on_its_way_out(victim, reason)
    town.cluster.pod(leaving, 0.0)
    found = town.asked(pod)
    assert isinstance(found, NotPreempted) is not eligible
    if isinstance(found, NotPreempted):
        assert (found.message, found.is_final) == (
            "not eligible due to a terminating pod on the nominated node.",
            False,
        )


def on_its_way_out(victim: Pod, reason: str) -> Pod:
    meta = structs.replace(victim.metadata, deletion_timestamp="2026-01-01T00:10:00Z")
    condition = PodCondition(type=DISRUPTED, status="True", reason=reason)
    return structs.replace(victim, metadata=meta, status=structs.replace(victim.status, conditions=(condition,)))


def test_nor_before_they_are_seen_to_go_nor_while_their_containers_may_still_run() -> None:
    town = full("a", "b")
    pod, victim = high(1), town.cluster.pods_on("a")[0]
    town.nominations.put(pod, "a")
    town.nominations.expect("uid-high", [victim.metadata.uid])
    assert isinstance(town.asked(pod), NotPreempted)
    town.cluster.pod_gone(victim, 0.0)
    assert isinstance(town.asked(pod), NotPreempted)
    town.cluster.tick(100.0)
    assert town.place(pod) == "a"


def test_where_room_is_promised_to_another_pod_that_counts_as_taken() -> None:
    town = full("a", "b", gpus=4)
    town.nominations.put(trainer("first", gpus=4, priority=100), "a")
    town.nominations.put(trainer("second", gpus=4, priority=100), "a")
    assert [town.victims(high(4))[0] for _ in range(3)] == ["b"] * 3


def test_a_promise_to_a_lesser_pod_does_not_count() -> None:
    town = full("a", gpus=4)
    for name in ("first", "second"):
        town.nominations.put(trainer(name, gpus=4, priority=50), "a")
    assert len(town.victims(high(4))[1]) == 1


def test_budgets_are_respected_where_that_is_possible() -> None:
    town = Town("a")
    for number in range(2):
        pod = trainer(f"low{number}", gpus=4, cpu="1")
        labelled = structs.replace(pod, metadata=structs.replace(pod.metadata, labels={"app": "web"} if number else {}))
        town.run(labelled, start_time=START)
    town.budgets.put(budget("web", 0))
    assert town.victims(high(4)) == ("a", ["low0"])


def test_a_node_on_which_no_budget_is_violated_is_preferred() -> None:
    town = Town("a", "b")
    for node, worth in (("a", 0), ("b", 50)):
        town.run(trainer(f"equal-{node}", gpus=4, priority=100), node, start_time=START)
        pod = trainer(f"on-{node}", gpus=4, priority=worth)
        town.run(
            structs.replace(pod, metadata=structs.replace(pod.metadata, labels={"on": node})), node, start_time=START
        )
    town.budgets.put(budget("tight", 0, {"matchLabels": {"on": "a"}}))
    assert town.victims(high(4)) == ("b", ["on-b"])


def test_so_many_candidates_are_looked_for_as_are_asked_for() -> None:
    town = full("a", "b", "c", gpus=4)
    worse = trainer("worse", gpus=4, priority=99)
    for node in ("a", "b"):
        for each in town.cluster.pods_on(node):
            better = structs.replace(each, spec=structs.replace(each.spec, priority=worse.spec.priority))
            town.cluster.pod(better, 0.0)
    assert town.victims(high(4))[0] == "c"
    few = {"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}
    found = {town.asked(high(4), rng, **few).node for rng in map(Fixed, (0.0, 0.4, 0.7))}  # type: ignore[union-attr]
    assert found == {"a", "b", "c"}


def test_what_was_found_out_is_forgotten_when_something_changes() -> None:
    town = full("a", "b", gpus=4)
    before = town.victims(high(4))
    victim = next(each for each in town.cluster.pods_on(before[0]) if each.metadata.name == before[1][0])
    worthy = structs.replace(victim, spec=structs.replace(victim.spec, priority=100))
    town.cluster.pod(worthy, 0.0)
    assert town.victims(high(4)) != before


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(0, 2)), min_size=1, max_size=10), st.data()
)
def test_victims_are_as_few_as_can_be_and_their_kubelet_admits_the_pod(
    pods: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    town, running = Town("a"), list[Pod]()
    for number, (gpus, cpu, priority) in enumerate(pods):
        pod = trainer(f"p{number}", gpus=gpus, cpu=str(cpu), priority=priority)
        if isinstance(town.choose(pod), Chosen):
            running.append(town.run(pod, "a", start_time=f"2026-01-01T00:{number:02}:00Z"))
    asked = trainer("new", gpus=data.draw(st.integers(1, 4)), cpu=str(data.draw(st.integers(1, 90))), priority=2)
    if isinstance(town.choose(asked), Chosen):
        return
    found = town.asked(asked)
    if isinstance(found, Nomination):
        gone = {pod.metadata.uid for pod in found.victims.pods}
        assert all(pod.spec.priority < 2 for pod in found.victims.pods)
        assert admitted(running, gone, asked)
        assert not any(admitted(running, gone - {uid}, asked) for uid in gone)


def admitted(running: list[Pod], gone: set[str], pod: Pod) -> bool:
    """By the kubelet, in the order in which the pods came."""
    state = servers.KUBELET.initial()
    for each in running:
        state, outcome = admission.admit(servers.KUBELET, state, each)
        assert outcome.admitted
    for uid in gone:
        state = state.without_pod(uid)
    return admission.admit(servers.KUBELET, state, pod)[1].admitted
