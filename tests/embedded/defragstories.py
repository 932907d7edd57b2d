"""Runs of `plan defrag --execute` on embedded clusters in virtual time, with what goes wrong drawn from a seed.

A story fills nodes with pods of ReplicaSets, lets half of them go, and asks for more free zones than there are. While
the executor works, calls fail and hang, the scheduler is killed and comes back, pods that want the same room arrive,
budgets forbid evictions for a while, nodes are cordoned, pods of the plan are deleted, and the executor itself is
killed and resumed. `Told` says how it ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from numalign.api.attributes import heldrooms
from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.plan.defrag import planner
from numalign.plan.defrag.clusterhand import ClusterHand
from numalign.plan.defrag.execution import Executor, Patience, restored
from numalign.plan.defrag.messages import DefragPlan, Execution
from numalign.plan.defrag.planner import Wanted
from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from tests import nodes
from tests.embedded.faultproxy import Proxy, Weather

NAME: Final = "numalign"
PATIENCE: Final = Patience(budget=300.0, landing=300.0, report=60.0)
LONGEST: Final = 7200.0
REPORTS: Final = Publishing(period=20.0)
ONE_ZONE: Final = {"numalign.io/numa-topology-policy": "SingleNUMANode"}


@dataclass
class Told:
    ending: Execution
    first: DefragPlan
    """As planned before anything goes wrong."""
    homeless: list[str]
    """ReplicaSets that lack a pod which was evicted."""
    held: list[str]
    """Nodes that still hold rooms."""
    blows: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    resumed: int = 0


class Story:
    def __init__(self, seed: int, embedded: Cluster, proxy: Proxy, client: Client, goes_wrong: bool) -> None:
        self.draw = random.Random(f"{seed}/story")
        self.embedded, self.proxy, self.client, self.goes_wrong = embedded, proxy, client, goes_wrong
        self.api, self.clock = embedded.api, embedded.clock
        self.blows: list[str] = []
        self.said: list[str] = []
        self.deleted: set[str] = set()
        """ReplicaSets of which a pod was deleted."""
        self.scheduler = AsyncExitStack()
        self._strangers = 0

    # The cluster

    async def settle(self) -> None:
        """Pods come, and some go again, so that free zones are spread over the nodes."""
        await self.start_scheduler()
        names = []
        for number in range(self.draw.randint(6, 8) * len(self.embedded.fleet.nodes) // 2):
            names.append(self.replicas(f"own-{number}", self.draw.randint(1, 4), self.draw.randint(1, 2)))
        await self.clock.sleep(40.0)
        for name in self.draw.sample(names, len(names) // 2):
            self.api.delete(resources.REPLICASETS, name, "default", propagation="Background")
        await self.clock.sleep(60.0)
        for pod in self.pods():
            if not pod.spec.node_name:
                owner = pod.metadata.controller
                assert owner is not None
                with suppress(StatusError):
                    self.api.delete(resources.REPLICASETS, owner.name, "default", propagation="Background")
        await self.clock.sleep(60.0)

    def replicas(self, name: str, cpus: int, count: int, scheduler: str = NAME) -> str:
        amounts = {"cpu": str(cpus), "memory": "1Gi"}
        container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
        spec = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 5, "containers": [container]}
        template = {"metadata": {"labels": {"app": name}}, "spec": spec}
        selector = {"matchLabels": {"app": name}}
        tree = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": count, "selector": selector, "template": template},
        }
        self.api.create(resources.REPLICASETS, tree)
        return name

    def pods(self) -> list[Pod]:
        return [decode.decode(Pod, tree) for tree in self.api.list(resources.PODS).items]

    async def start_scheduler(self) -> None:
        setup = schedulers.zone_aware(random.Random(self.draw.random()))
        await self.scheduler.enter_async_context(self.embedded.scheduled_by(setup))

    # What goes wrong

    async def blow(self) -> None:
        chosen = self.draw.choice((self.kill_scheduler, self.stranger, self.forbid, self.cordon, self.delete))
        self.blows.append(chosen.__name__)
        with suppress(StatusError):
            await chosen()

    async def kill_scheduler(self) -> None:
        await self.scheduler.aclose()
        await self.clock.sleep(self.draw.uniform(0.0, 20.0))
        self.scheduler = AsyncExitStack()
        await self.start_scheduler()

    async def stranger(self) -> None:
        """A pod that wants room, too, and goes after a while."""
        self._strangers += 1
        name = self.replicas(f"stranger-{self._strangers}", self.draw.randint(3, 7), 1)
        await self.clock.sleep(self.draw.uniform(5.0, 60.0))
        self.api.delete(resources.REPLICASETS, name, "default", propagation="Background")

    async def forbid(self) -> None:
        """A budget for all pods that allows no eviction for a while."""
        tree = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "none", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {}},
        }
        self.api.create(resources.PODDISRUPTIONBUDGETS, tree)
        await self.clock.sleep(self.draw.uniform(5.0, 60.0))
        self.api.delete(resources.PODDISRUPTIONBUDGETS, "none", "default")

    async def cordon(self) -> None:
        name = self.draw.choice(sorted(self.embedded.fleet.nodes))
        for unschedulable in (True, None):
            patch = Patch("merge", {"spec": {"unschedulable": unschedulable}})
            self.api.patch(resources.NODES, name, "", patch)
            await self.clock.sleep(self.draw.uniform(5.0, 60.0))

    async def delete(self) -> None:
        there = [each for each in self.pods() if each.metadata.name.startswith("own-")]
        if there:
            pod = self.draw.choice(there).metadata
            self.deleted.add(pod.labels["app"])
            self.api.delete(resources.PODS, pod.name, pod.namespace)

    # The run

    async def run(self) -> Told:
        await self.settle()
        wanted = await self.wanted()
        storms = [asyncio.ensure_future(self.proxy.storm())] if self.goes_wrong else []
        storms += [asyncio.ensure_future(self.blowing())] if self.goes_wrong else []
        taken = await self.look()
        first = planner.plan(lambda: restored(taken), wanted)
        ending, resumed = await self.executed(wanted)
        for storm in storms:
            storm.cancel()
        await asyncio.gather(*storms, return_exceptions=True)
        homeless, held = self.homeless(), self.held()
        await self.scheduler.aclose()
        return Told(ending, first, homeless, held, self.blows, self.said, resumed)

    async def look(self) -> Any:
        async with Client(self.embedded.access(), clock=self.clock) as client:
            return await ClusterHand(client).look()

    async def wanted(self) -> Wanted:
        """One zone more than are free, or two where that is possible."""
        taken, zones = await self.look(), 1
        while planner.is_reached(restored(taken), Wanted(text="", zones=zones)):
            zones += 1
        asked = Wanted(text="", zones=zones + 1, patience=500)
        if self.draw.random() < 0.5 and planner.plan(lambda: restored(taken), asked).verdict == "found":
            zones += 1
        return Wanted(text=f"{zones} free zones", zones=zones, patience=500)

    async def executed(self, wanted: Wanted) -> tuple[Execution, int]:
        resumed = 0
        while True:
            work = asyncio.ensure_future(self.execute(wanted))
            killed_after = self.draw.expovariate(1 / 60.0) if self.goes_wrong and resumed < 3 else LONGEST
            done, _ = await asyncio.wait({work}, timeout=killed_after)
            if done:
                return work.result(), resumed
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            resumed += 1
            await self.clock.sleep(self.draw.uniform(0.0, 30.0))

    async def execute(self, wanted: Wanted) -> Execution:
        executor = Executor(ClusterHand(self.client), wanted, self.said.append, PATIENCE)
        await executor.resumed()
        return await executor.carried_out()

    async def blowing(self) -> None:
        while True:
            await self.clock.sleep(self.draw.expovariate(1 / 15.0))
            await self.blow()

    def homeless(self) -> list[str]:
        """ReplicaSets of which a pod does not run, although nobody but the executor took one away."""
        there, found = self.pods(), []
        for each in self.api.list(resources.REPLICASETS).items:
            name, count = each["metadata"]["name"], each["spec"]["replicas"]
            running = [pod for pod in there if pod.metadata.labels.get("app") == name and pod.has_started]
            if name.startswith("own-") and name not in self.deleted and len(running) < count:
                found.append(name)
        return found

    def held(self) -> list[str]:
        nodes_ = self.api.list(resources.NODES).items
        return [n["metadata"]["name"] for n in nodes_ if heldrooms.NAME in n["metadata"].get("annotations", {})]


@asynccontextmanager
async def staged(seed: int, *, goes_wrong: bool, direct: bool = False) -> AsyncIterator[Story]:
    chances = random.Random(seed)
    clock = virtualtime.clock(chances)
    machine = nodes.machine(zones=2, cores=8, memory=16)
    policy = chances.choice(("single-numa-node", "restricted"))
    made = partial(NodeSpec, machine=machine, settings=nodes.settings(machine, policy), publishing=REPORTS)
    if direct:
        made = partial(NodeSpec, machine=machine, direct=True, labels=ONE_ZONE, publishing=REPORTS)
    specs = [made(name=f"n-{number}") for number in range(chances.randint(2, 4))]
    async with cluster.running(specs, clock, chances, default_scheduler=False) as embedded:
        await clock.sleep(5.0)
        access = embedded.access()
        weather = Weather(
            calls=chances.uniform(0.0, 0.1), events=0.0, outages=chances.uniform(40.0, 200.0), silence=40.0
        )
        proxy = Proxy(access.server, access.dial, chances, weather)
        access.dial = proxy.dial
        async with Client(access, clock=clock) as client:
            yield Story(seed, embedded, proxy, client, goes_wrong)
            await proxy.close()


async def _told(seed: int, goes_wrong: bool, direct: bool) -> Told:
    async with staged(seed, goes_wrong=goes_wrong, direct=direct) as story:
        return await story.run()


def told(seed: int, *, goes_wrong: bool, direct: bool = False) -> Told:
    """`direct`: the nodes are in direct mode, and give each pod one zone."""
    return virtualtime.run(_told(seed, goes_wrong, direct))
