"""Stories about the scheduler under faults, in virtual time: what may go wrong, and what must hold whatever did.

A story runs replicas of the scheduler against one embedded cluster. Faults are drawn from a seed: the API server goes
away and comes back, streams are cut, answers to calls are lost or late, replicas are killed or cut off, nodes go. At
the end everything is healed, and what was recorded is judged.

One thing nobody can prevent: a binding that reaches the server after its sender gave it up may find its place taken.
Such bindings are counted as overdue, and only on their nodes a pod may have been turned away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.apiserver.storage.store import WatchCache
from numalign.simulator.apiserver.verbs.api import Api, Change
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios import judge
from numalign.simulator.scenarios.history import HistoryEntry, HistoryRecorder
from numalign.simulator.trees import Tree
from tests.embedded.faultproxy import Weather
from tests.embedded.schedulerreplicas import NAME, Books, Replica

FAIR = Weather(calls=0.0, events=0.0, bindings=0.0)
STEP, SHORTEST_REST = 30.0, 90.0


@dataclass
class Told:
    lines: list[HistoryEntry]
    pods: list[Tree]
    replicas: list[Replica]
    books: list[Books]
    overdue: list[Overdue]

    @property
    def living(self) -> list[Tree]:
        """Pods that count on a node."""
        ended = ("Succeeded", "Failed")
        return [pod for pod in self.pods if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ended]

    @property
    def waiting(self) -> list[str]:
        ours = [pod for pod in self.pods if pod["spec"].get("schedulerName") == NAME]
        return [pod["metadata"]["name"] for pod in ours if not pod["spec"].get("nodeName")]

    @property
    def broken(self) -> list[str]:
        breaches = [each for replica in self.replicas for each in replica.breaches]
        return [*map(str, judge.bound_twice(self.lines)), *breaches]

    @property
    def bounced(self) -> list[HistoryEntry]:
        """Pods that their node turned away, although no overdue binding had come before them there."""
        return [
            line
            for line in self.lines
            if line.what == "rejected"
            and not any(each.node == line.node and each.at <= line.at for each in self.overdue)
        ]

    @property
    def is_at_rest(self) -> bool:
        return not self.waiting and all(books == Books(pods=len(self.living)) for books in self.books)

    def count(self, what: str) -> int:
        return sum(line.what == what for line in self.lines)


@dataclass
class Overdue:
    at: float
    uid: str
    node: str


@dataclass
class Stage:
    """Where a story takes place."""

    embedded: Cluster
    replicas: list[Replica]
    draw: random.Random
    clock: Any
    overdue: list[Overdue] = field(default_factory=list)

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

    async def turns(self, most: int) -> None:
        """Some turns of the loop: to somewhere between two awaits of somebody."""
        for _ in range(self.draw.randrange(most)):
            await asyncio.sleep(0)

    async def restart_server(self, seconds: float) -> None:
        """Nobody can connect for so long, what was under way is torn, and what happened before is forgotten: whoever
        wants to read on has to look at everything again."""
        away = asyncio.gather(*(replica.cut_off(seconds) for replica in self.replicas))
        # Two turns until the lines are down, then nothing is heard any more.
        await asyncio.sleep(0)
        store = self.api.state.store
        for resource in (NODES, PODS):
            forget(store.collection(resource).watch_cache, store.version)
        await away


def forget(cache: WatchCache, version: int) -> None:
    cache._events.clear()
    cache.floor = version


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
    rest: float = 900.0,
) -> Told:
    clock, draw = virtualtime.clock(random.Random(f"{seed}/clock")), random.Random(f"{seed}/story")
    async with cluster.running(nodes, clock, random.Random(seed)) as embedded:
        ours = [Replica(f"r{n}", embedded, random.Random(f"{seed}/{n}"), weather) for n in range(replicas)]
        running = [asyncio.ensure_future(each.run()) for each in ours]
        stage = Stage(embedded, ours, draw, clock)
        try:
            await clock.sleep(12.0)
            return await _recorded(plot, stage, rest)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            for each in ours:
                await each.proxy.close()


async def _recorded(plot: Plot, stage: Stage, rest: float) -> Told:
    recorder, began = HistoryRecorder(stage.api), stage.clock.now()
    stage.api.subscribe(PODS, lambda change: _note_overdue(stage, change, began), since_now=True)
    await plot(stage)
    for each in stage.replicas:
        each.proxy.calm()
    # What fell silent is noticed after a minute. Stories that are at rest then need not wait for the others.
    found, waited = _found(stage, recorder), 0.0
    while waited < rest and (waited < SHORTEST_REST or not found.is_at_rest):
        await stage.clock.sleep(STEP)
        found, waited = _found(stage, recorder), waited + STEP
    recorder.stop()
    return found


def _found(stage: Stage, recorder: HistoryRecorder) -> Told:
    books = [each.books() for each in stage.replicas]
    return Told(recorder.lines, stage.api.list(PODS).items, stage.replicas, books, stage.overdue)


def _note_overdue(stage: Stage, change: Change, began: float) -> None:
    node, uid = change.tree["spec"].get("nodeName"), change.tree["metadata"]["uid"]
    is_bound_now = change.old is not None and not change.old["spec"].get("nodeName") and node
    if is_bound_now and not any(replica.holds(uid, node) for replica in stage.replicas):
        stage.overdue.append(Overdue(round(stage.clock.now() - began, 6), uid, node))
