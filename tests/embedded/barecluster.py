"""A cluster of objects alone: the embedded API server and our scheduler beside it, no kubelets and no controllers.

What nodes report and what becomes of pods is what a test writes, in virtual time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from numalign.scheduler import settings
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.storage.resources import PODS, Resource
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.trees import Tree

VERSION = "kubescheduler.config.k8s.io/v1"


class Bare:
    def __init__(self, seed: int = 1) -> None:
        self.clock = virtualtime.clock(random.Random(seed))
        self.api = Api(self.clock, random.Random(seed), admission=admission)
        cluster.create_first_objects(self.api)
        self.cluster = Cluster(self.api, Fleet(self.api, self.clock, random.Random(seed)), self.clock)

    def resource(self, tree: Tree) -> Resource:
        group, _, version = tree["apiVersion"].rpartition("/")
        found = self.api.state.registry.of_kind(group, version, tree["kind"])
        assert found is not None, tree["kind"]
        return found

    def create(self, tree: Tree) -> None:
        made = self.api.create(self.resource(tree), tree, manager="test")
        if "status" in tree:
            meta = made["metadata"]
            patch = Patch("merge", {"status": tree["status"]})
            self.api.patch(self.resource(tree), meta["name"], meta.get("namespace", ""), patch, subresource="status")

    def write(self, tree: Tree) -> None:
        """Put it in the place of what is there, as far as it says something."""
        meta = tree["metadata"]
        self.api.patch(self.resource(tree), meta["name"], meta.get("namespace", ""), Patch("merge", tree))

    def set_status(self, namespace: str, name: str, **status: object) -> None:
        self.api.patch(PODS, name, namespace, Patch("merge", {"status": status}), subresource="status")

    def pods(self) -> dict[str, Tree]:
        return {pod["metadata"]["name"]: pod for pod in self.api.list(PODS).items}

    def bound(self) -> dict[str, str]:
        """In the order of creation."""
        return {name: pod["spec"].get("nodeName", "") for name, pod in self.pods().items()}

    @asynccontextmanager
    async def scheduler(self, written: dict[str, Any]) -> AsyncIterator[Scheduler]:
        """Ours with this configuration, until the block is left; a failure of it is raised there."""
        config = settings.read({"apiVersion": VERSION, "kind": "KubeSchedulerConfiguration", **written}, "test")
        async with self.cluster.scheduled_by(Setup(config=config, rng=random.Random(1))) as ours:
            yield ours
