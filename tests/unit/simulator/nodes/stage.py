"""A small stage for stories about nodes: an API server and a fleet in virtual time, and words to tell them with."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.clock import Clock
from numalign.simulator.nodes import workloads
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.nodes.node import SimulatedNode
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.nodes.workloads import Workload
from numalign.simulator.trees import Tree

T = TypeVar("T")

MACHINE = presets.machine("2x16")
GPUS = presets.machine("gpu-8")
STATIC = Settings(topology_policy="single-numa-node", cpu_policy="static", reserved={"cpu": 2000})
NODE = NodeSpec(name="n1", machine=MACHINE, settings=STATIC)


class ListeningApi(Api):
    """Notes every successful write of a topology report: when, by which verb, and what is there after it."""

    def __init__(self, clock: Clock, chance: random.Random) -> None:
        super().__init__(clock, chance)
        self.reported: list[tuple[float, str, Tree]] = []

    def create(self, resource: Resource, tree: Tree, **how: Any) -> Tree:
        return self._noted(resource, "create", super().create(resource, tree, **how))

    def update(self, resource: Resource, tree: Tree, **how: Any) -> Tree:
        return self._noted(resource, "update", super().update(resource, tree, **how))

    def patch(self, resource: Resource, name: str, namespace: str, patch: Patch, **how: Any) -> Tree:
        return self._noted(resource, patch.kind, super().patch(resource, name, namespace, patch, **how))

    def _noted(self, resource: Resource, verb: str, tree: Tree) -> Tree:
        if resource == crd.RESOURCE:
            self.reported.append((self.clock.now(), verb, tree))
        return tree


class Stage:
    def __init__(self, seed: int, workload: Workload) -> None:
        self.clock = virtualtime.clock(random.Random(seed))
        self.api = ListeningApi(self.clock, random.Random(seed + 1))
        for namespace in ("default", "kube-node-lease"):
            self.api.create(NAMESPACES, {"metadata": {"name": namespace}})
        self.api.create(CUSTOMRESOURCEDEFINITIONS, crd.crd())
        self.fleet = Fleet(self.api, self.clock, random.Random(seed + 2), workload)

    async def passes(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def create(self, *pods: Tree) -> None:
        for each in pods:
            self.api.create(PODS, each)

    def pod(self, name: str) -> Tree:
        return self.api.get(PODS, name, "default")

    def phases(self) -> dict[str, str]:
        pods = self.api.list(PODS).items
        return {each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in pods}

    def node(self, name: str = "n1") -> Tree:
        return self.api.get(NODES, name)

    def lease(self, name: str = "n1") -> Tree:
        return self.api.get(LEASES, name, "kube-node-lease")

    def events(self, reason: str) -> list[Tree]:
        return [each for each in self.api.list(EVENTS).items if each["reason"] == reason]

    def report(self, name: str = "n1") -> Tree:
        return self.api.get(crd.RESOURCE, name)

    def reports(self) -> list[Tree]:
        return self.api.list(crd.RESOURCE).items

    def moments(self) -> list[float]:
        """When reports were written."""
        return [moment for moment, _, _ in self.api.reported]


def played(story: Callable[[Stage], Awaitable[T]], *, seed: int = 1, workload: Workload = workloads.annotated) -> T:
    """What the story tells at its end."""

    async def play() -> T:
        stage = Stage(seed, workload)
        running = asyncio.create_task(stage.fleet.run(), name="fleet")
        try:
            return await story(stage)
        finally:
            if running.done():
                running.result()
            running.cancel()

    return virtualtime.run(play())


def pod(name: str, cpu: str = "4", *, node: str = "n1", gpus: int = 0, **spec: Any) -> Tree:
    """A Guaranteed pod of one container, already bound; `annotations` go where they belong."""
    metadata = {"name": name, "namespace": "default", "annotations": spec.pop("annotations", {})}
    defaults = {"nodeName": node, "terminationGracePeriodSeconds": 30}
    defaults |= {"containers": [container("main", cpu, gpus=gpus)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": defaults | spec}


def container(name: str, cpu: str = "4", *, gpus: int = 0, **more: Any) -> Tree:
    amounts = {"cpu": cpu, "memory": "1Gi"} | ({presets.GPU: str(gpus)} if gpus else {})
    return {"name": name, "image": "img", "resources": {"requests": amounts, "limits": amounts}} | more


def states(pod: Tree) -> dict[str, str]:
    """Container to running, waiting or terminated."""
    status = pod["status"]
    found = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return {each["name"]: next(iter(each["state"])) for each in found}


def conditions(thing: Tree) -> dict[str, str]:
    return {each["type"]: each["status"] for each in thing["status"]["conditions"]}


def holders(node: SimulatedNode) -> frozenset[str]:
    """Uids of pods that hold exclusive CPUs on the node."""
    cpu = node.node_state.state.cpu
    assert cpu is not None
    return frozenset(cpu.assignments)
