"""Stories about the scheduler under faults, in virtual time: what may go wrong, and what must hold whatever did.

A story runs replicas of the scheduler against one embedded cluster. Each replica is started again when it ends, as a
Deployment would do it. Faults are drawn from a seed: the API server goes away and comes back, streams are cut, answers
to calls are lost or late, replicas are killed or cut off. At the end everything is healed, and the recording is
judged."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numalign.kube import leading
from numalign.kube.client import Client
from numalign.kube.lease import Terms
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.api import Api
from numalign.simulator.apiserver.resources import NODES, PODS
from numalign.simulator.cluster import HERE, Cluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios import judging
from numalign.simulator.scenarios.history import Line, Recorder
from numalign.simulator.trees import Tree
from tests.embedded.faultproxy import Proxy, Weather

TERMS = Terms(lease=15, renew=10, retry=2)
NAME = "numalign"
FAIR = Weather(calls=0.0, events=0.0)


class Replica:
    """A scheduler that is started again whenever it ends."""

    def __init__(self, name: str, embedded: Cluster, draw: random.Random, weather: Weather) -> None:
        self.name, self._embedded, self._clock, self._draw = name, embedded, embedded.clock, draw
        upstream = embedded.access().dial
        assert upstream is not None
        self.proxy = Proxy(HERE, upstream, draw, weather)
        self.now: Scheduler | None = None
        self.starts = 0
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        while True:
            self.starts += 1
            self._task = asyncio.ensure_future(self._life(f"{self.name}-{self.starts}"))
            with contextlib.suppress(asyncio.CancelledError, leading.LeadershipLost):
                await self._ended(self._task)
            await self._clock.sleep(1.0)

    async def _ended(self, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise _Over from None
        await task

    def kill(self) -> None:
        """At whatever it waits for right now."""
        if self._task is not None:
            self._task.cancel()

    def books(self) -> Books:
        assert self.now is not None
        return Books(self.now.cluster.pods, len(self.now.cluster.assumed), len(self.now.queue.flights))

    async def _life(self, identity: str) -> None:
        async with self._client() as client, self._client() as elector:
            election = leading.election(NAME, "kube-system", TERMS, identity)
            setup = Setup(instance=identity, rng=random.Random(self._draw.random()))
            self.now = Scheduler(setup, client, election)
            await self.now.run(elector)

    def _client(self) -> Client:
        access = replace(self._embedded.access(), dial=self.proxy.dial)
        return Client(access, clock=self._clock)


class _Over(Exception):
    """The story is."""


@dataclass(frozen=True)
class Books:
    """What a replica believes when all is quiet."""

    pods: int
    assumed: int = 0
    in_flight: int = 0


@dataclass
class Told:
    lines: list[Line]
    pods: list[Tree]
    replicas: list[Replica]
    books: list[Books]

    @property
    def living(self) -> list[Tree]:
        """Pods that count on a node."""
        ended = ("Succeeded", "Failed")
        return [pod for pod in self.pods if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ended]

    @property
    def ours(self) -> list[Tree]:
        return [pod for pod in self.pods if pod["spec"].get("schedulerName") == NAME]

    @property
    def waiting(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.ours if not pod["spec"].get("nodeName")]

    @property
    def broken(self) -> list[str]:
        return [str(each) for each in judging.broken(self.lines)]

    def count(self, what: str) -> int:
        return sum(line.what == what for line in self.lines)


@dataclass
class Stage:
    """Where a story takes place."""

    embedded: Cluster
    replicas: list[Replica]
    draw: random.Random
    clock: Any

    @property
    def api(self) -> Api:
        return self.embedded.api

    def create(self, name: str, cpus: int, **spec: object) -> None:
        self.api.create(PODS, pod(name, cpus, **spec), manager="story")

    def delete(self, name: str, grace: int | None = None) -> None:
        self.api.delete(PODS, name, "default", grace=grace)

    def delete_node(self, name: str) -> None:
        self.embedded.fleet.remove(name)
        self.api.delete(NODES, name)

    async def restart_server(self, seconds: float) -> None:
        """Nobody can connect for so long, and what was under way is torn."""
        for replica in self.replicas:
            cut_off(replica)
        await self.clock.sleep(seconds)
        for replica in self.replicas:
            replica.proxy.is_out = False


def cut_off(replica: Replica) -> None:
    replica.proxy.is_out = True
    for front in list(replica.proxy.fronts):
        front.reset()


def pod(name: str, cpus: int, **spec: object) -> Tree:
    limits = {"cpu": str(cpus), "memory": "1Gi"}
    container = {"name": "main", "image": "a:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": NAME, "containers": [container]} | spec,
    }


Plot = Callable[[Stage], Any]


def told(plot: Plot, nodes: list[NodeSpec], **how: Any) -> Told:
    """The story from its beginning to well after its end, when everything is healed."""
    return virtualtime.run(_told(plot, nodes, **how))


async def _told(
    plot: Plot,
    nodes: list[NodeSpec],
    *,
    seed: int = 1,
    replicas: int = 1,
    weather: Weather = FAIR,
    rest: float = 200.0,
) -> Told:
    clock, draw = virtualtime.clock(random.Random(f"{seed}/clock")), random.Random(f"{seed}/story")
    async with cluster.running(nodes, clock, random.Random(seed)) as embedded:
        ours = [Replica(f"r{n}", embedded, random.Random(f"{seed}/{n}"), weather) for n in range(replicas)]
        running = [asyncio.ensure_future(each.run()) for each in ours]
        try:
            await clock.sleep(12.0)
            recorder = Recorder(embedded.api)
            await plot(Stage(embedded, ours, draw, clock))
            for each in ours:
                each.proxy.calm()
            await clock.sleep(rest)
            recorder.stop()
            return Told(recorder.lines, embedded.api.list(PODS).items, ours, [each.books() for each in ours])
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for each in ours:
                await each.proxy.close()
