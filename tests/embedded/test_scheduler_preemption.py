"""Preemption on a whole cluster, in virtual time: who has to go, who gets the room, and what is told about it."""

from __future__ import annotations

import pytest

from numalign.kubelet.machine import presets
from numalign.simulator.apiserver.storage.resources import EVENTS, PODDISRUPTIONBUDGETS, PODS, PRIORITYCLASSES
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.embedded.faultproxy import Weather
from tests.embedded.schedulerstories import Stage, Told

GPUS = presets.machine("gpu-8")
GPU = "nvidia.com/gpu"


def servers(count: int, policy: str = "single-numa-node", **more: float) -> list[NodeSpec]:
    settings = nodes.settings(GPUS, policy)
    return [NodeSpec(name=f"g-{n}", machine=GPUS, settings=settings, **more) for n in range(count)]  # type: ignore[arg-type]


def classes(stage: Stage) -> None:
    for name, value in (("low", 1), ("middle", 100), ("high", 1000)):
        tree: Tree = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        stage.api.create(PRIORITYCLASSES, tree | {"value": value}, manager="story")


def trainer(stage: Stage, name: str, gpus: int, worth: str, **more: object) -> None:
    limits = {"cpu": str(gpus), "memory": "1Gi", GPU: str(gpus)}
    container = {"name": "main", "image": "a:1", "resources": {"limits": limits}}
    pod = stories.pod(
        name, 1, containers=[container], priorityClassName=worth, terminationGracePeriodSeconds=60, **more
    )
    stage.api.create(
        PODS, pod | {"metadata": pod["metadata"] | {"labels": {"app": name.split("-")[0]}}}, manager="story"
    )


def where(told: Told) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in told.pods}


def left(told: Told, app: str) -> int:
    """How many of these pods are still on nodes."""
    return sum(bool(node) for name, node in where(told).items() if name.startswith(app))


async def crowd(stage: Stage, count: int, gpus: int = 1) -> None:
    classes(stage)
    for number in range(count):
        trainer(stage, f"small-{number}", gpus, "low")
    await stage.clock.sleep(30)


def preempted(stage: Stage) -> list[str]:
    return [event["message"] for event in stage.api.list(EVENTS).items if event["reason"] == "Preempted"]


def test_a_job_for_a_whole_zone_takes_the_place_of_small_ones_in_one_zone() -> None:
    notes: list[str] = []

    async def plot(stage: Stage) -> None:
        await crowd(stage, 8)
        trainer(stage, "big", 4, "high")
        await stage.clock.sleep(60)
        notes.extend(preempted(stage))

    told = stories.told(plot, servers(1))
    assert (where(told)["big"], left(told, "small")) == ("g-0", 4)
    assert told.count("rejected") == 0
    big = next(pod["metadata"]["uid"] for pod in told.pods if pod["metadata"]["name"] == "big")
    assert notes == [f"Preempted by pod {big} on node g-0"] * 4


def test_a_job_for_all_gpus_of_a_node_clears_the_node_that_costs_least() -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 16)
        trainer(stage, "dear", 1, "middle")
        await stage.clock.sleep(30)
        trainer(stage, "big", 8, "high")

    told = stories.told(plot, servers(2, "best-effort"))
    places = where(told)
    assert {places["big"], places["dear"]} == {"g-0", "g-1"}
    assert (left(told, "small"), told.count("rejected")) == (7, 0)


def test_nobody_is_evicted_for_a_pod_that_no_zone_could_hold() -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 8)
        trainer(stage, "big", 5, "high")

    told = stories.told(plot, servers(1))
    assert (where(told)["big"], left(told, "small")) == ("", 8)
    status = next(pod["status"] for pod in told.pods if pod["metadata"]["name"] == "big")
    assert status["conditions"][0]["message"].endswith(
        " preemption: 0/1 nodes are available: 1 cannot align the pod even without pods of lower priority."
    )


def test_while_victims_take_their_time_nobody_else_gets_the_zone_and_nobody_else_has_to_go() -> None:
    nominated: dict[str, str] = {}

    async def plot(stage: Stage) -> None:
        await crowd(stage, 7)
        trainer(stage, "big", 4, "high")
        await stage.clock.sleep(2)
        for number in range(8):
            trainer(stage, f"late-{number}", 1, "low")
        await stage.clock.sleep(15)
        for pod in stage.api.list(PODS).items:
            nominated[pod["metadata"]["name"]] = pod["status"].get("nominatedNodeName", "")

    told = stories.told(plot, servers(1, stop_seconds=30))
    assert [name for name, node in nominated.items() if node] == ["big"]
    assert where(told)["big"] == "g-0"
    assert (left(told, "small") + left(told, "late"), told.count("rejected")) == (4, 0)
    assert left(told, "small") >= 3


def test_several_jobs_at_once_each_get_a_zone() -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 16)
        for number in range(3):
            trainer(stage, f"big-{number}", 4, "high")

    told = stories.told(plot, servers(2))
    assert (left(told, "big"), left(told, "small"), told.count("rejected")) == (3, 4, 0)


def test_a_greater_one_may_take_what_was_promised_to_a_lesser() -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 2, gpus=4)
        trainer(stage, "middle-1", 4, "middle")
        trainer(stage, "middle-2", 4, "middle")
        await stage.clock.sleep(1)
        trainer(stage, "high", 4, "high")

    told = stories.told(plot, servers(1))
    assert (where(told)["high"], left(told, "middle"), left(told, "small")) == ("g-0", 1, 0)


def test_a_new_leader_goes_on_where_the_old_one_left_off() -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 16)
        trainer(stage, "big", 4, "high")
        await stage.clock.sleep(0.5)
        for replica in stage.replicas:
            replica.kill()

    told = stories.told(plot, servers(2), replicas=2)
    assert (bool(where(told)["big"]), left(told, "small"), told.count("rejected")) == (True, 12, 0)


def test_a_budget_decides_which_node_is_cleared() -> None:
    async def plot(stage: Stage) -> None:
        classes(stage)
        for name in ("web", "batch"):
            trainer(stage, f"{name}-1", 8, "low")
        await stage.clock.sleep(30)
        tree: Tree = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
        stage.api.create(PODDISRUPTIONBUDGETS, tree, manager="story")
        await stage.clock.sleep(5)
        trainer(stage, "big", 8, "high")

    told = stories.told(plot, servers(2, "best-effort"))
    assert (left(told, "web"), left(told, "batch"), left(told, "big")) == (1, 0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_befalls_it_no_more_have_to_go_than_are_needed(seed: int) -> None:
    async def plot(stage: Stage) -> None:
        await crowd(stage, 24)
        for number in range(4):
            trainer(stage, f"big-{number}", 4, "high")
        await stage.clock.sleep(stage.draw.uniform(0.1, 3.0))
        stage.replicas[0].kill()

    told = stories.told(plot, servers(3), seed=seed, replicas=2, weather=Weather(silence=60.0), rest=400.0)
    assert (left(told, "big"), left(told, "small"), told.count("rejected"), told.broken) == (4, 8, 0, [])
