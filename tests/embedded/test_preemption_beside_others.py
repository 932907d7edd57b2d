"""Preemption while another scheduler waits for the same room: the preemptor is not sent to a node that rejects it."""

from __future__ import annotations

import random

import pytest

from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS, PRIORITYCLASSES
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree

SETTINGS = Settings(topology_policy="single-numa-node", cpu_policy="static", reserved_cpus=0b11, reserved={"cpu": 2000})
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100_000,
}


def server(name: str) -> NodeSpec:
    """Two zones of four GPUs."""
    return NodeSpec(name=name, machine=presets.machine("gpu-8"), settings=SETTINGS)


def pod(name: str, gpus: int, scheduler: str, **spec: object) -> Tree:
    limits = {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": str(gpus)}
    containers = [{"name": "main", "image": "a:1", "resources": {"limits": limits}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": containers, **spec},
    }


async def story(latency: float) -> Tree:
    """Three full servers, two pods of default-scheduler that wait, and a pod of ours that preempts: the pod in the end.
    `latency`: of our scheduler's calls and watches, in seconds; default-scheduler has 5 ms."""
    clock, chances = virtualtime.clock(random.Random(1)), random.Random(1)
    async with cluster.running(map(server, "abc"), clock, chances) as embedded:
        reached = cluster.access(embedded.api, clock, latency)
        async with schedulers.running(schedulers.zone_aware(chances), reached, clock):
            await clock.sleep(10.0)
            embedded.api.create(PRIORITYCLASSES, HIGH, manager="test")
            for number in range(14):
                embedded.api.create(PODS, pod(f"llm-{number}", 2, "default-scheduler"), manager="test")
            await clock.sleep(10.0)
            embedded.api.create(PODS, pod("prod", 4, "numalign", priorityClassName="high"), manager="test")
            await clock.sleep(60.0)
            return embedded.api.get(PODS, "prod", "default")


@pytest.mark.parametrize("milliseconds", [1, 5, 7, 9, 12])
def test_whoever_is_quicker_the_preemptor_runs_and_is_not_rejected(milliseconds: int) -> None:
    prod = virtualtime.run(story(milliseconds / 1000))
    assert (prod["status"]["phase"], prod["status"].get("reason")) == ("Running", None)
