"""An embedded cluster with numalign installed, in virtual time, for tests that make one thing wrong in it.

`Ward` holds the cluster and the doors of its API server: an answer may be replaced, as by a kubelet behind the proxy or
by an authorizer that refuses. `examined` runs a story and returns what the doctor finds at its end."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from msgspec import structs

from numalign.api.objects.node import Taint
from numalign.deploy import render, values
from numalign.deploy.doctor import collect, diagnosis
from numalign.deploy.doctor.diagnosis import Diagnosis
from numalign.deploy.doctor.observed import Observed
from numalign.deploy.release import Release
from numalign.kube.client import Client
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.versions import Minor
from numalign.process.http.connection import Connection
from numalign.process.http.messages import Request, Response
from numalign.simulator import cluster, pipes, virtualtime
from numalign.simulator.apiserver.http import application
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.cluster import HERE, Cluster
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from numalign.simulator.trees import Tree

GIB: Final = 1 << 30
SETTINGS: Final = Settings(
    topology_policy="single-numa-node",
    cpu_policy="static",
    reserved_cpus=0b11,
    memory_policy="Static",
    reserved_memory=(MemoryReservation(0, {"memory": GIB}),),
    reserved={"cpu": 2000, "memory": GIB - (100 << 20)},
    eviction_hard={"memory": 100 << 20},
    minor=Minor(1, 37),
)
MACHINE: Final = presets.machine("gpu-8")
CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "numalign"}],
}
HOME: Final = "numalign-system"


def node(name: str = "n0", machine: Machine = MACHINE, publisher: str = "agent", **settings: Any) -> NodeSpec:
    made = structs.replace(SETTINGS, **settings)
    return NodeSpec(name=name, machine=machine, settings=made, publishing=Publishing(publisher=publisher))  # type: ignore[arg-type]


def tainted(spec: NodeSpec, key: str) -> NodeSpec:
    return structs.replace(spec, taints=(Taint(key=key, effect="NoSchedule"),))


def deployment(name: str, config: str = "", replicas: int = 1) -> Tree:
    """Of another scheduler of ours."""
    container = {"name": "scheduler", "image": "numalign:0.1.0", "command": ["numalign", "scheduler", "run"]}
    volumes = [{"name": "config", "configMap": {"name": config}}] if config else []
    return workload("Deployment", name, container, replicas=replicas, volumes=volumes, account="numalign-scheduler")


def workload(
    kind: str, name: str, container: Tree, *, account: str = "", volumes: Sequence[Tree] = (), **spec: Any
) -> Tree:
    pod = {"containers": [container], "volumes": [*volumes]} | ({"serviceAccountName": account} if account else {})
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": HOME},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            **spec,
        },
    }


def config_map(name: str = "numalign-scheduler", **changes: Any) -> Tree:
    metadata = {"name": name, "namespace": HOME}
    text = yaml.safe_dump(CONFIG | changes)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": text}}


def pod(name: str, limits: dict[str, str] | None = None, **spec: Any) -> Tree:
    container = {"name": "main", "image": "a:1"} | ({"resources": {"limits": limits}} if limits else {})
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]} | spec}


def installed(given: Tree | None = None) -> list[Tree]:
    """What the deployer applies with these values; the definition is there already."""
    made = render.render(values.read(given or {}), Release(namespace=HOME))
    return [each for each in made if each["kind"] not in ("Namespace", "CustomResourceDefinition")]


@dataclass
class Ward:
    embedded: Cluster
    clock: Any
    replaced: dict[str, Callable[[Request], Response | None]] = field(default_factory=dict)
    """Answers by path; None: the API server answers."""

    @property
    def api(self) -> Any:
        return self.embedded.api

    def resource(self, tree: Tree) -> Resource:
        group, _, version = tree["apiVersion"].rpartition("/")
        found = self.api.state.registry.of_kind(group, version, tree["kind"])
        assert found is not None, tree["kind"]
        return found  # type: ignore[no-any-return]

    def create(self, *trees: Tree) -> None:
        for tree in trees:
            self.api.create(self.resource(tree), tree, manager="test")

    def write(self, tree: Tree, subresource: str = "", manager: str = "test") -> None:
        """Puts it in the place of what is there, as far as it says something."""
        meta = tree["metadata"]
        patch = Patch("merge", tree)
        self.api.patch(
            self.resource(tree),
            meta["name"],
            meta.get("namespace", ""),
            patch,
            subresource=subresource,
            manager=manager,
        )

    def delete(self, tree: Tree) -> None:
        self.api.delete(self.resource(tree), tree["metadata"]["name"], tree["metadata"].get("namespace", ""))

    def answers(self, path: str, told: Any, code: int = 200) -> None:
        self.replaced[path] = lambda _: Response(code, json.dumps(told).encode())

    def forbids(self, path: str) -> None:
        status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": f"no right to {path}"}
        self.answers(path, status | {"code": 403}, 403)

    def configz(self, name: str, **changes: Any) -> None:
        """What the kubelet answers behind the API server."""
        runs = {
            "topologyManagerPolicy": "single-numa-node",
            "topologyManagerScope": "container",
            "cpuManagerPolicy": "static",
            "cpuManagerReconcilePeriod": "10s",
            "reservedSystemCPUs": "0-1",
            "memoryManagerPolicy": "Static",
            "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        }
        self.answers(f"/api/v1/nodes/{name}/proxy/configz", {"kubeletconfig": runs | changes})

    def answer(self, request: Request) -> Any:
        replaced = self.replaced.get(request.path)
        told = replaced(request) if replaced is not None else None
        return told if told is not None else self._router.answer(request)

    def __post_init__(self) -> None:
        self._router = Router(self.api.state)
        self.state = self.api.state

    def access(self) -> Access:
        served = application.served(self)  # type: ignore[arg-type]
        dial = pipes.dial(lambda: lambda: Connection(served))
        return Access(HERE, Login(auth.unchanging(Identity()), self.clock), dial=dial)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with Client(self.access(), clock=self.clock) as client:
            yield client

    async def observed(self) -> Observed:
        async with self.client() as client:
            return await collect.observe(client)


Story = Callable[[Ward], Awaitable[None]]
AFTER: Final = 125.0
"""Seconds after which nothing counts as new."""


def healthy() -> list[NodeSpec]:
    return [node("n0"), node("n1")]


def played(
    story: Callable[[Ward], Awaitable[Any]], nodes: Sequence[NodeSpec] | None = None, *, bare: bool = False
) -> Any:
    """The result of the story, told after the cluster has settled. `bare`: numalign is not installed."""

    async def told() -> Any:
        clock = virtualtime.clock(random.Random(1))
        specs = healthy() if nodes is None else nodes
        async with cluster.running(specs, clock, random.Random(1)) as embedded:
            ward = Ward(embedded, clock)
            ward.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
            if not bare:
                ward.create(*installed())
            await clock.sleep(AFTER)
            return await story(ward)

    return virtualtime.run(told())


def examined(story: Story, nodes: Sequence[NodeSpec] | None = None, *, bare: bool = False, **asked: Any) -> Diagnosis:
    async def judged(ward: Ward) -> Diagnosis:
        await story(ward)
        return diagnosis.diagnose(await ward.observed(), **asked)

    found: Diagnosis = played(judged, nodes, bare=bare)
    return found
