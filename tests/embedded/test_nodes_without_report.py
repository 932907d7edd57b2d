"""A node that has not reported, or whose report was deleted, takes no pod that its kubelet then rejects.

Whole clusters in virtual time: kubelets that admit and reject, publishers, and our scheduler over HTTP."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests import nodes

REPORTS = ("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology")


def server(name: str, **more: Any) -> NodeSpec:
    """Two zones with 15 and 16 CPUs for pods."""
    machine = nodes.machine(zones=2, cores=16)
    return NodeSpec(name=name, machine=machine, settings=nodes.settings(machine, "single-numa-node"), **more)


class Town:
    """An embedded cluster with our scheduler."""

    def __init__(self, embedded: Cluster) -> None:
        self.embedded, self.api = embedded, embedded.api

    def create(self, name: str, cpus: int) -> None:
        limits = {"cpu": str(cpus), "memory": "1Gi"}
        container = {"name": "main", "image": "a:1", "resources": {"limits": limits}}
        self.api.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"schedulerName": "numalign", "containers": [container]},
            },
            manager="test",
        )

    async def sleep(self, seconds: float) -> None:
        await self.embedded.clock.sleep(seconds)

    def delete_report(self, node: str) -> None:
        reports = self.api.state.registry.of_kind(*REPORTS)
        assert reports is not None
        self.api.delete(reports, node)

    @property
    def pods(self) -> dict[str, Tree]:
        return {pod["metadata"]["name"]: pod for pod in self.api.list(PODS).items}

    @property
    def bound(self) -> dict[str, str]:
        return {name: pod["spec"].get("nodeName", "") for name, pod in self.pods.items()}

    @property
    def rejected(self) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"].get("reason")]


@asynccontextmanager
async def town(*specs: NodeSpec, seed: int = 1) -> AsyncIterator[Town]:
    clock, chances = virtualtime.clock(random.Random(f"{seed}/clock")), random.Random(seed)
    async with (
        cluster.running(specs, clock, chances) as embedded,
        embedded.scheduled_by(schedulers.zone_aware(chances)),
    ):
        yield Town(embedded)


def told(story: Any) -> Any:
    return virtualtime.run(story)


def test_a_deleted_report_does_not_make_the_scheduler_forget_the_zones() -> None:
    async def story() -> None:
        async with town(server("a")) as found:
            await found.sleep(10.0)
            found.create("first", 10)
            found.create("second", 9)
            await found.sleep(5.0)
            found.create("too-large", 8)
            await found.sleep(5.0)
            assert found.bound == {"first": "a", "second": "a", "too-large": ""}
            found.embedded.fleet.nodes["a"].stop_exporter()
            found.delete_report("a")
            await found.sleep(120.0)
            assert (found.bound["too-large"], found.rejected) == ("", [])
            found.create("small", 5)
            await found.sleep(5.0)
            assert (found.bound["small"], found.rejected) == ("a", [])

    told(story())
