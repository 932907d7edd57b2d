"""A cluster's day: jobs and deployments come and go, nodes are added, drained, rebooted and deleted, reports lag.

Played in virtual time on the embedded cluster with one scheduler. Every so often the load stops, everybody finishes
what is under way, and the scheduler is held against one made from nothing. What there is to do is drawn from a seed, at
rates that keep about two thirds of the machines' CPUs busy; requests are drawn too, so that shapes of pods come and go
as well."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kubelet.machine import presets
from numalign.scheduler.main import Scheduler
from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, JOBS, NODES, PODS
from numalign.simulator.apiserver.verbs.api import Change, Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes import workloads
from numalign.simulator.nodes.specs import NodeSpec, PublisherFaults, Publishing
from numalign.simulator.trees import Tree
from tests import nodes
from tests.embedded import fromnothing

NAME = "numalign"
HOUR = 3600.0
SETTLING = 700.0
"""Seconds after which nodes that were down are there again, and have reported."""
QUIET = 30.0
"""Seconds without a word of any pod after which every report about them has been written, whatever delayed it."""
REPORTS = Publishing(period=600.0, lag=1.0, jitter=4.0, faults=PublisherFaults(duplicated=0.01, restarted=0.002))
"""None is lost for good: of a pod that ended and still stands in the last report only those know who saw it end."""
GPU = "nvidia.com/gpu"
MAKES = (("2x16", "single-numa-node"), ("2x16", "best-effort"), ("gpu-8", "restricted"), ("2x32-smt", "none"))
RACKS = 5


@dataclass
class Churn:
    """`found` is what was wrong at the checkpoints, `footprints` how many things the scheduler held then."""

    embedded: Cluster
    draw: random.Random
    most_nodes: int
    numbers: count[int] = field(default_factory=count)
    deployments: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    footprints: list[Counter[str]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Uids of pods that were deleted."""
    bound: int = 0
    heard_at: float = 0.0
    """When anything happened to a pod last."""

    def note(self, change: Change) -> None:
        self.heard_at = self.embedded.clock.now()
        if change.kind == "DELETED":
            self.gone.add(change.tree["metadata"]["uid"])
        elif change.old is not None and not change.old["spec"].get("nodeName") and change.tree["spec"].get("nodeName"):
            self.bound += 1

    # Pods

    def start_job(self) -> None:
        name, pods = f"job-{next(self.numbers)}", self.draw.randint(1, 4)
        seconds = f"{self.draw.uniform(60, 1800):.0f}"
        template = self._template(name, {workloads.RUN_SECONDS: seconds}, restartPolicy="Never")
        spec = {"completions": pods, "parallelism": pods, "ttlSecondsAfterFinished": 300, "template": template}
        self._create(JOBS, "batch/v1", "Job", name, spec)

    def start_deployment(self) -> None:
        if len(self.deployments) > self.most_nodes / 3:
            return self.end_deployment()
        name = f"app-{next(self.numbers)}"
        spec = {
            "replicas": self.draw.randint(1, 6),
            "selector": {"matchLabels": {"app": name}},
            "template": self._template(name, {}, **self._constraints(name)),
        }
        self._create(DEPLOYMENTS, "apps/v1", "Deployment", name, spec)
        self.deployments.append(name)

    def end_deployment(self) -> None:
        if self.deployments:
            name = self.deployments.pop(self.draw.randrange(len(self.deployments)))
            self.embedded.api.delete(DEPLOYMENTS, name, "default")

    def scale(self) -> None:
        self._change({"spec": {"replicas": self.draw.randint(0, 8)}})

    def roll(self) -> None:
        """A new template: pods of another shape take the place of the old ones."""
        template = {"spec": {"containers": [self._container()]}}
        self._change({"spec": {"template": template}})

    def delete_pod(self) -> None:
        pods = self.embedded.api.list(PODS).items
        if pods:
            meta = self.draw.choice(pods)["metadata"]
            self.embedded.api.delete(PODS, meta["name"], meta["namespace"])

    # Nodes

    def add_node(self) -> None:
        if len(self.embedded.fleet.nodes) < self.most_nodes:
            self.embedded.fleet.add(self.node())

    def node(self) -> NodeSpec:
        number = next(self.numbers)
        make, policy = MAKES[number % len(MAKES)]
        machine = presets.machine(make)
        labels = {"rack": f"r{number % RACKS}", "topology.kubernetes.io/zone": f"z{number % 3}"}
        settings = nodes.settings(machine, policy)
        return NodeSpec(name=f"n-{number}", machine=machine, settings=settings, labels=labels, publishing=REPORTS)

    def delete_node(self) -> None:
        name = self._some_node()
        self.embedded.fleet.remove(name)
        self.embedded.api.delete(NODES, name)
        self.embedded.fleet.add(self.node())

    def drain(self) -> None:
        name = self._some_node()
        self._cordon(name, True)
        for tree in self.embedded.api.list(PODS, fields=f"spec.nodeName={name}").items:
            self.embedded.api.delete(PODS, tree["metadata"]["name"], tree["metadata"]["namespace"])
        asyncio.get_running_loop().call_later(self.draw.uniform(60, 600), partial(self._cordon, name, None))

    def reboot(self) -> None:
        self.embedded.fleet.nodes[self._some_node()].reboot()

    def restart_kubelet(self) -> None:
        self.embedded.fleet.nodes[self._some_node()].restart()

    def restart_exporter(self) -> None:
        self.embedded.fleet.nodes[self._some_node()].restart_exporter()

    # How it is written

    def act(self) -> None:
        (act,) = self.draw.choices([*ACTS], [*ACTS.values()])
        try:
            act(self)
        except StatusError as refusal:
            if refusal.code not in (404, 409):
                raise

    def _cordon(self, name: str, cordoned: bool | None) -> None:
        if name in self.embedded.fleet.nodes:
            self.embedded.api.patch(NODES, name, "", Patch("merge", {"spec": {"unschedulable": cordoned}}))

    def _some_node(self) -> str:
        return self.draw.choice(sorted(self.embedded.fleet.nodes))

    def _change(self, body: Tree) -> None:
        if self.deployments:
            self.embedded.api.patch(
                DEPLOYMENTS, self.draw.choice(self.deployments), "default", Patch("strategic", body)
            )

    def _create(self, resource: Any, version: str, kind: str, name: str, spec: Tree) -> None:
        metadata = {"name": name, "namespace": "default"}
        self.embedded.api.create(resource, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})

    def _template(self, name: str, annotations: dict[str, str], **spec: object) -> Tree:
        made = {"schedulerName": NAME, "containers": [self._container()]} | spec
        return {"metadata": {"labels": {"app": name}, "annotations": annotations}, "spec": made}

    def _container(self) -> Tree:
        limits = {"cpu": str(self.draw.randint(1, 6)), "memory": f"{self.draw.randint(64, 4096)}Mi"}
        if self.draw.random() < 0.15:
            limits[GPU] = str(self.draw.choice((1, 1, 2, 4)))
        return {"name": "main", "image": "a:1", "resources": {"limits": limits}}

    def _constraints(self, name: str) -> dict[str, Any]:
        selector = {"matchLabels": {"app": name}}
        zone = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}
        spread = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"} | zone
        apart = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED | {"podAffinityTerm": zone}]
            }
        }
        alone = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        strict = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
        return self.draw.choice(
            ({}, {}, {"topologySpreadConstraints": [spread]}, {"affinity": apart}, {"affinity": strict})
        )


PREFERRED: Tree = {"weight": 10}
ACTS: dict[Callable[[Churn], None], float] = {
    Churn.start_job: 60,
    Churn.start_deployment: 10,
    Churn.end_deployment: 6,
    Churn.scale: 12,
    Churn.roll: 6,
    Churn.delete_pod: 6,
    Churn.add_node: 1,
    Churn.delete_node: 1,
    Churn.drain: 1,
    Churn.reboot: 1,
    Churn.restart_kubelet: 2,
    Churn.restart_exporter: 2,
}


def played(size: int, seconds: float, *, every: float, checkpoints: int, seed: int = 1) -> Churn:
    """`every`: seconds between two things to do, on average."""
    return virtualtime.run(_played(size, seconds, every, checkpoints, seed))


async def _played(size: int, seconds: float, every: float, checkpoints: int, seed: int) -> Churn:
    clock = virtualtime.clock(random.Random(f"{seed}/clock"))
    async with (
        cluster.running((), clock, random.Random(seed)) as embedded,
        embedded.scheduled_by(schedulers.zone_aware(random.Random(f"{seed}/ours"))) as ours,
    ):
        churn = Churn(embedded, random.Random(f"{seed}/churn"), size)
        embedded.api.subscribe(PODS, churn.note)
        for _ in range(size):
            embedded.fleet.add(churn.node())
        await clock.sleep(30.0)
        for _ in range(checkpoints):
            end = clock.now() + seconds / checkpoints
            while clock.now() < end:
                churn.act()
                await clock.sleep(churn.draw.expovariate(1 / every))
            await clock.sleep(SETTLING)
            await _quiet(churn)
            await _check(churn, ours)
        return churn


async def _quiet(churn: Churn) -> None:
    """Jobs go on ending. Of a pod that ended since its node's last report, only who saw it end knows what is free."""
    clock = churn.embedded.clock
    while clock.now() < churn.heard_at + QUIET:
        await clock.sleep(churn.heard_at + QUIET - clock.now())


async def _check(churn: Churn, ours: Scheduler) -> None:
    async with Client(churn.embedded.access(), clock=churn.embedded.clock) as client:
        churn.found += fromnothing.differences(ours, fromnothing.made(ours, client), PROBES)
    ghosts = fromnothing.ghosts(ours, churn.gone)
    churn.found += [f"{part} holds {number} pods that are gone" for part, number in ghosts.items()]
    churn.footprints.append(fromnothing.footprint(ours))


def _probe(name: str, **spec: Any) -> Pod:
    limits = spec.pop("limits")
    container = {"name": "main", "image": "a:1", "resources": {"requests": limits, "limits": limits}}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "probe"}}
    return decode.decode(Pod, {"metadata": meta, "spec": {"schedulerName": NAME, "containers": [container]} | spec})


RACK = {"topologyKey": "rack", "labelSelector": {"matchLabels": {}}}
PROBES = (
    _probe("small", limits={"cpu": "1", "memory": "1Gi"}),
    _probe("large", limits={"cpu": "12", "memory": "8Gi"}),
    _probe("gpus", limits={"cpu": "4", "memory": "1Gi", GPU: "2"}),
    _probe(
        "spread",
        limits={"cpu": "2", "memory": "1Gi"},
        topologySpreadConstraints=[{"maxSkew": 3, "whenUnsatisfiable": "DoNotSchedule"} | RACK],
    ),
    _probe(
        "alone",
        limits={"cpu": "2", "memory": "1Gi"},
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [RACK]}},
    ),
)
