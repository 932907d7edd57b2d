"""The topology-blind scheduler and disruption budgets at work, in virtual time."""

import asyncio

import pytest

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import (
    DEPLOYMENTS,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    PRIORITYCLASSES,
)
from numalign.simulator.trees import Tree
from tests.unit.simulator.controllers.stories import Cluster, condition, deployment, played, template


def pod(name: str, cpu: str = "1", **spec: object) -> Tree:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": template(cpu=cpu)["spec"] | spec}


def where(cluster: Cluster) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in cluster.pods()}


def test_a_pod_that_fits_nowhere_is_told_why_and_goes_when_there_is_room() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a", cpu="4")
        cluster.api.create(PODS, pod("first", "3"))
        await asyncio.sleep(5)
        cluster.api.create(PODS, pod("second", "3"))
        await asyncio.sleep(5)
        told = (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod."
        )
        assert f"FailedScheduling: {told}" in cluster.events("Pod")
        assert condition(cluster.get(PODS, "second"), "PodScheduled") == ("False", "Unschedulable")
        cluster.api.delete(PODS, "first", "default", grace=0)
        await asyncio.sleep(12)
        assert where(cluster) == {"second": "a"}

    played(story)


def test_without_nodes_a_pod_waits() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.api.create(PODS, pod("p"))
        await asyncio.sleep(3)
        assert cluster.events("Pod") == ["FailedScheduling: no nodes available to schedule pods"]
        cluster.node("late")
        await asyncio.sleep(12)
        assert where(cluster) == {"p": "late"}

    played(story)


def test_the_more_important_pod_goes_first() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.api.create(PODS, pod("plain", "3"))
        cluster.api.create(PRIORITYCLASSES, {"metadata": {"name": "vital"}, "value": 100})
        cluster.api.create(PODS, pod("vital", "3", priorityClassName="vital"))
        await asyncio.sleep(3)
        cluster.node("a", cpu="4")
        await asyncio.sleep(12)
        assert where(cluster) == {"plain": "", "vital": "a"}

    played(story)


def test_pods_spread_to_the_emptiest_nodes() -> None:
    async def story(cluster: Cluster) -> None:
        for name in "abc":
            cluster.node(name)
        cluster.api.create(DEPLOYMENTS, deployment(6))
        await asyncio.sleep(5)
        assert sorted(where(cluster).values()) == ["a", "a", "b", "b", "c", "c"]

    played(story)


def test_finished_pods_take_no_room() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a", cpu="4")
        cluster.api.create(PODS, pod("first", "3"))
        await asyncio.sleep(5)
        cluster.report(("default", "first"), {"phase": "Succeeded"})
        cluster.api.create(PODS, pod("second", "3"))
        await asyncio.sleep(5)
        assert where(cluster)["second"] == "a"

    played(story)


def test_pods_of_other_schedulers_and_gated_ones_are_left_alone() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(PODS, pod("other", schedulerName="numalign"))
        cluster.api.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await asyncio.sleep(5)
        assert where(cluster) == {"gated": "", "other": ""}
        cluster.change(PODS, "gated", {"spec": {"schedulingGates": None}})
        await asyncio.sleep(5)
        assert where(cluster) == {"gated": "a", "other": ""}

    played(story)


def test_what_others_bind_counts_too() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a", cpu="4")
        cluster.api.create(PODS, pod("foreign", "3", nodeName="a"))
        await asyncio.sleep(1)
        cluster.api.create(PODS, pod("ours", "3"))
        await asyncio.sleep(5)
        assert where(cluster) == {"foreign": "a", "ours": ""}
        cluster.api.delete(NODES, "a")
        cluster.node("a", cpu="6")
        await asyncio.sleep(12)
        assert where(cluster)["ours"] == "a"

    played(story)


def test_a_budget_lets_one_pod_go_at_a_time() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("a")
        cluster.api.create(DEPLOYMENTS, deployment(3))
        selector = {"matchLabels": {"app": "web"}}
        budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": selector}}
        cluster.api.create(PODDISRUPTIONBUDGETS, budget)
        await asyncio.sleep(5)
        names = sorted(where(cluster))
        assert cluster.get(PODDISRUPTIONBUDGETS, "b")["status"]["disruptionsAllowed"] == 1
        cluster.api.evict(names[0], "default")
        with pytest.raises(StatusError, match="disruption budget"):
            cluster.api.evict(names[1], "default")
        await asyncio.sleep(10)
        assert cluster.get(PODDISRUPTIONBUDGETS, "b")["status"]["disruptionsAllowed"] == 1

    played(story)


def test_two_runs_of_a_story_are_the_same() -> None:
    seen: list[list[str]] = []

    async def story(cluster: Cluster) -> None:
        for name in "abc":
            cluster.node(name)
        cluster.api.create(DEPLOYMENTS, deployment(9))
        await asyncio.sleep(5)
        cluster.change(DEPLOYMENTS, "web", {"spec": {"template": template("app:2")}})
        await asyncio.sleep(20)
        seen.append(cluster.events("Pod") + cluster.events("ReplicaSet"))

    played(story)
    played(story)
    assert seen[0] == seen[1]
