"""Stories about the operator in virtual time: an embedded cluster, the two custom resources, and operators as processes
that can be stopped, killed and cut off.

`told` runs a plot and gives back the stage. What the operator writes is counted where it reaches the API server."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from msgspec import structs

from numalign.deploy import values
from numalign.deploy.apply.differences import is_within
from numalign.deploy.model import Values
from numalign.deploy.operator import agents, crds, fields, groups, kinds, plan, schedulers
from numalign.deploy.operator.main import OperatorProcess, Setup
from numalign.deploy.operator.plan import PlanOptions
from numalign.deploy.release import Release
from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.kube.request import Request
from numalign.kube.transport.sender import Sender
from numalign.kubelet.machine import presets
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    EVENTS,
    NAMESPACES,
    NODES,
    Resource,
)
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.cluster import HERE, Cluster
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from numalign.simulator.trees import Tree
from tests import nodes
from tests.embedded.faultproxy import Proxy, Weather

MACHINE = presets.machine("2x16")
SETTINGS = nodes.settings(MACHINE, "single-numa-node")
NAMESPACE = "numalign-system"
FAIR = Weather(calls=0.0, events=0.0, bindings=0.0)
WORKER, CONTROL = "node-role.kubernetes.io/worker", "node-role.kubernetes.io/control-plane"
VALUES = values.read(None)
OPTIONS = PlanOptions(release=Release(namespace=NAMESPACE, manager=fields.MANAGER), values=VALUES)
__all__ = ["OperatorProcess", "is_within"]
OPERATOR, SCHEDULER = kinds.OPERATOR, kinds.SCHEDULER
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def node(name: str, *roles: str, **more: Any) -> NodeSpec:
    """A node of these roles whose publisher is the agent's DaemonSet's business, not the simulator's."""
    labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
    return NodeSpec(
        name=name,
        machine=MACHINE,
        settings=SETTINGS,
        labels=labels,
        boot_seconds=1.0,
        publishing=Publishing(publisher="none"),
        **more,
    )


SIX = [*(node(f"w-{n}", "worker") for n in range(3)), *(node(f"c-{n}", "control-plane") for n in range(3))]


def operator(*node_groups: Tree, name: str = OPERATOR.name, **more: Any) -> Tree:
    spec = {"nodeGroups": list(node_groups) or [{"poolName": "worker"}]} | more.pop("spec", {})
    return {"apiVersion": kinds.API_VERSION, "kind": OPERATOR.kind, "metadata": {"name": name, **more}, "spec": spec}


def scheduler(name: str = SCHEDULER.name, annotations: dict[str, str] | None = None, **spec: Any) -> Tree:
    meta: Tree = {"name": name} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": kinds.API_VERSION, "kind": SCHEDULER.kind, "metadata": meta, "spec": spec}


class Process:
    """The operator as a process: started again whenever it ends."""

    def __init__(self, stage: Stage, name: str, weather: Weather) -> None:
        self._stage, self.name = stage, name
        self._draw = random.Random(f"{stage.seed}/{name}")
        upstream = stage.embedded.access().dial
        assert upstream is not None
        self.proxy = Proxy(HERE, upstream, self._draw, weather)
        self.now: OperatorProcess | None = None
        self.starts = 0
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while True:
            self.starts += 1
            self._task = asyncio.ensure_future(self._life())
            try:
                await asyncio.wait((self._task,))
            except asyncio.CancelledError:
                self._task.cancel()
                await asyncio.wait((self._task,))
                raise
            with contextlib.suppress(asyncio.CancelledError, leading.LeadershipLost):
                await self._task
            await self._stage.clock.sleep(1.0)

    async def _life(self) -> None:
        access = replace(self._stage.embedded.access(), dial=self.proxy.dial)
        async with (
            Client(access, clock=self._stage.clock) as client,
            Client(access, clock=self._stage.clock) as elector,
        ):
            setup = Setup(options=self._stage.options, instance=self.name, identity=f"{self.name}-{self.starts}")
            self.now = OperatorProcess(setup, client, elector)
            await self.now.run()

    def stop(self) -> None:
        """As a signal would."""
        if self._task is not None:
            self._task.cancel()

    def kill(self) -> None:
        """It gets no further, and does not release its lease."""
        for front in list(self.proxy.fronts):
            front.reset()
        was, self.proxy.is_out = self.proxy.is_out, True
        self.stop()
        asyncio.get_running_loop().call_later(0.5, lambda: setattr(self.proxy, "is_out", was))

    async def cut_off(self, seconds: float) -> None:
        self.proxy.is_out = True
        for front in list(self.proxy.fronts):
            front.reset()
        await self._stage.clock.sleep(seconds)
        self.proxy.is_out = False


@dataclass
class Stage:
    embedded: Cluster
    clock: Any
    draw: random.Random
    seed: int
    options: PlanOptions = OPTIONS
    processes: list[Process] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    """Requests of the operator that write, Leases excepted."""
    breaches: list[str] = field(default_factory=list)
    """Writes that no operator may make."""

    @property
    def api(self) -> Api:
        return self.embedded.api

    def resource(self, kind: str) -> Resource:
        found = {
            OPERATOR.kind: (kinds.GROUP, "v1"),
            SCHEDULER.kind: (kinds.GROUP, "v1"),
            "NodeResourceTopology": ("topology.node.k8s.io", "v1alpha2"),
        }.get(kind)
        for each in self.api.state.registry:
            if (
                each.kind == kind
                and (found is None or (each.group, each.version) == found)
                and each.group != "events.k8s.io"
            ):
                return each
        raise AssertionError(kind)

    def create(self, tree: Tree) -> Tree:
        made: Tree = self.api.create(self.resource(tree["kind"]), tree, manager="kubectl")
        return made

    def edit(self, kind: str, name: str, changes: Tree, namespace: str = "", manager: str = "kubectl-edit") -> None:
        self.api.patch(self.resource(kind), name, namespace, Patch("merge", changes), manager=manager)

    def set_spec(self, custom: kinds.Custom, **changes: Any) -> None:
        self.edit(custom.kind, custom.name, {"spec": changes})

    def annotate(self, custom: kinds.Custom, annotation: str, value: str | None) -> None:
        self.edit(custom.kind, custom.name, {"metadata": {"annotations": {annotation: value}}})

    def delete(self, kind: str, name: str, namespace: str = "", **how: Any) -> None:
        self.api.delete(self.resource(kind), name, namespace, **how)

    def get(self, kind: str, name: str, namespace: str = "") -> Tree | None:
        try:
            found: Tree = self.api.get(self.resource(kind), name, namespace)
        except StatusError:
            return None
        return found

    def daemonset(self, group: str = "worker") -> Tree:
        found = self.get("DaemonSet", f"numalign-agent-{group}", NAMESPACE)
        assert found is not None
        return found

    def deployment(self) -> Tree:
        found = self.get("Deployment", "numalign-scheduler", NAMESPACE)
        assert found is not None
        return found

    def all(self, kind: str) -> list[Tree]:
        return list(self.api.list(self.resource(kind)).items)

    def names(self, kind: str) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.all(kind))

    def ours(self) -> dict[tuple[str, str, str], Tree]:
        """All objects with the operator's label."""
        label = f"app.kubernetes.io/managed-by={fields.MANAGER}"
        found = {}
        for kind in plan.kinds_of(self.options):
            for each in self.api.list(self.resource(kind), labels=label).items:
                meta = each["metadata"]
                found[kind, meta.get("namespace", ""), meta["name"]] = each
        return found

    def status(self, custom: kinds.Custom) -> Tree:
        found = self.get(custom.kind, custom.name)
        assert found is not None
        return dict(found.get("status") or {})

    def conditions(self, custom: kinds.Custom) -> dict[str, Tree]:
        return {each["type"]: each for each in self.status(custom).get("conditions", ())}

    def state(self, custom: kinds.Custom) -> tuple[str, str, str]:
        """The condition that holds, its reason and message; of the current generation, or nothing."""
        generation = (self.get(custom.kind, custom.name) or {})["metadata"]["generation"]
        held = [
            each
            for each in self.conditions(custom).values()
            if each["status"] == "True"
            and each["type"] in ("Available", "Progressing", "Degraded")
            and each["observedGeneration"] == generation
        ]
        assert len(held) <= 1, held
        return (held[0]["type"], held[0]["reason"], held[0]["message"]) if held else ("", "", "")

    async def until(self, holds: Callable[[], bool], seconds: float = 120.0) -> None:
        deadline = self.clock.now() + seconds
        while not holds():
            assert self.clock.now() < deadline, "it did not come to that"
            await self.clock.sleep(0.5)

    async def available(self, custom: kinds.Custom = OPERATOR, seconds: float = 120.0) -> None:
        await self.until(lambda: self.state(custom)[0] == "Available", seconds)

    async def degraded(self, reason: str, custom: kinds.Custom = OPERATOR, seconds: float = 120.0) -> str:
        await self.until(lambda: self.state(custom)[:2] == ("Degraded", reason), seconds)
        return self.state(custom)[2]

    async def quiet(self, seconds: float = 180.0) -> list[str]:
        """What the operator writes although nothing happens."""
        before = len(self.writes)
        await self.clock.sleep(seconds)
        return self.writes[before:]

    def label(self, name: str, **labels: str | None) -> None:
        self.api.patch(NODES, name, "", Patch("merge", {"metadata": {"labels": labels}}))

    def role(self, name: str, role: str, value: str | None = "") -> None:
        self.label(name, **{f"node-role.kubernetes.io/{role}": value})

    def taint(self, name: str, *taints: Tree) -> None:
        self.api.patch(NODES, name, "", Patch("merge", {"spec": {"taints": list(taints)}}))

    def report(self, name: str, signed: bool = True) -> None:
        """A report as the agent of that node would write it."""
        annotations = {"numalign.io/agent": "x"} if signed else {}
        meta = {"name": name, "annotations": annotations}
        self.create(
            {
                "apiVersion": "topology.node.k8s.io/v1alpha2",
                "kind": "NodeResourceTopology",
                "metadata": meta,
                "zones": [],
            }
        )

    def events(self) -> list[Tree]:
        return [each for each in self.api.list(EVENTS).items if each.get("reportingComponent") == fields.MANAGER]

    def pods(self, component: str) -> list[Tree]:
        return [
            each
            for each in self.all("Pod")
            if each["metadata"].get("labels", {}).get("app.kubernetes.io/component") == component
            and not each["metadata"].get("deletionTimestamp")
        ]

    def agents(self) -> list[str]:
        """The nodes that have an agent."""
        return sorted(each["spec"]["nodeName"] for each in self.pods("agent") if each["spec"].get("nodeName"))


Plot = Callable[[Stage], Awaitable[None]]


def told(plot: Plot, specs: list[NodeSpec] = SIX, **how: Any) -> Stage:
    return virtualtime.run(_told(plot, specs, **how))


async def _told(
    plot: Plot,
    specs: list[NodeSpec],
    *,
    seed: int = 1,
    replicas: int = 1,
    weather: Weather = FAIR,
    options: PlanOptions = OPTIONS,
    own_definition: bool = False,
) -> Stage:
    clock = virtualtime.clock(random.Random(f"{seed}/clock"))
    async with cluster.running(specs, clock, random.Random(seed)) as embedded:
        stage = Stage(embedded, clock, random.Random(f"{seed}/story"), seed, options)
        if own_definition:
            stage.api.delete(CUSTOMRESOURCEDEFINITIONS, "noderesourcetopologies.topology.node.k8s.io")
        stage.api.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        for definition in crds.definitions():
            stage.api.create(CUSTOMRESOURCEDEFINITIONS, definition)
        with _noted(stage):
            stage.processes = [Process(stage, f"r{number}", weather) for number in range(replicas)]
            running = [asyncio.ensure_future(each.run()) for each in stage.processes]
            try:
                await clock.sleep(5.0)
                await plot(stage)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
                for process in stage.processes:
                    await process.proxy.close()
        return stage


@contextlib.contextmanager
def _noted(stage: Stage) -> Iterator[None]:
    """Notes only what operators send."""
    admitted = Sender._admitted

    async def noted(sender: Sender, request: Request) -> Any:
        identity = await admitted(sender, request)
        running = {each.now._client.sender: each.now for each in stage.processes if each.now is not None}
        if sender in running and request.method in WRITES and "/leases" not in request.path:
            what = f"{request.method} {request.path}"
            stage.writes.append(what)
            if kinds.GROUP in request.path and not request.path.endswith("/status"):
                stage.breaches.append(f"{what}: it may write nothing but a status")
            election = running[sender].election
            if "/events" not in request.path and election is not None and not election.leads(stage.clock.now()):
                stage.breaches.append(f"{what}: it does not lead")
            if b"finalizers" in request.body:
                stage.breaches.append(f"{what}: it has a finalizer")
        return identity

    Sender._admitted = noted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Sender._admitted = admitted  # type: ignore[method-assign]


def wanted(stage: Stage) -> dict[tuple[str, str, str], Tree]:
    """What `deploy render` prints for the settings of both custom resources."""
    made: list[Tree] = []
    if (found := stage.get(OPERATOR.kind, OPERATOR.name)) is not None:
        spec = kinds.OPERATORS.read(encoded(found)).spec
        read, problems = groups.read(spec.node_groups)
        assert not problems
        image = plan.image(spec.image_spec, stage.options.values.agent.image, stage.options)
        made += agents.objects_of(agents.values_of(spec, read, image, stage.options.values), stage.options)
    if (found := stage.get(SCHEDULER.kind, SCHEDULER.name)) is not None:
        resource = kinds.SCHEDULERS.read(encoded(found))
        count = sum(CONTROL in each["metadata"].get("labels", {}) for each in stage.all("Node"))
        image = plan.image(resource.spec.image_spec, stage.options.values.scheduler.image, stage.options)
        replicas = resource.spec.replicas if resource.spec.replicas is not None else (1 if count < 3 else 3)
        made += schedulers.objects_of(
            schedulers.values_of(resource, replicas, image, stage.options.values), stage.options
        )
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in made}


def encoded(tree: Tree) -> bytes:
    return msgspec.json.encode(tree)


def with_values(**changes: Any) -> PlanOptions:
    """Options with other values under the custom resources."""
    read: Values = values.read(changes)
    return structs.replace(OPTIONS, values=read)
