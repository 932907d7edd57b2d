"""Evictions: each victim gets its condition and is deleted once; the preemptor stays out of the queue meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.events.events import Reporter
from numalign.kube.resources import Status
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.preempt.preemptor import Evictor, PreemptionGate
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NEW_EVENTS, PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.trees import Tree
from tests.embedded import schedulerstories as stories
from tests.unit.scheduler import waitingpods


class Scene:
    """An API server with two pods on a node without a kubelet, and a preemptor that waits for them."""

    def __init__(self, embedded: Cluster, client: Client) -> None:
        self.embedded, self.client, self.leads = embedded, client, True
        self.gate, self.there, self.woken = PreemptionGate(), {"v0", "v1"}, 0
        self.queue = waitingpods.queue((self.gate,))
        self.publisher = Publisher(client, Reporter("numalign", "here"))
        self.evictor = Evictor(
            client,
            self.queue,
            gate=self.gate,
            publisher=self.publisher,
            leads=lambda: self.leads,
            is_there=lambda uid: any(self.pod(name).metadata.uid == uid for name in self.there),
            wake=self._wake,
        )

    def pod(self, name: str) -> Pod:
        trees = self.embedded.api.list(PODS).items
        return next(decode.decode(Pod, each) for each in trees if each["metadata"]["name"] == name)

    def start(self, *names: str) -> None:
        preemptor = self.pod("high")
        self.queue.add(preemptor, 0.0)
        popped = self.queue.pop(0.0)
        assert popped is not None
        self.evictor.start(preemptor, "n", [self.pod(name) for name in names])
        self.queue.park(popped.uid, waitingpods.refused("NodeResourcesFit"), 0.0)

    def _wake(self) -> None:
        self.woken += 1


Play = Callable[[Scene], Awaitable[None]]


def played(play: Play) -> tuple[Scene, list[Tree], list[Tree]]:
    """The scene, the pods and the events at the end."""

    async def run() -> tuple[Scene, list[Tree], list[Tree]]:
        clock = virtualtime.clock(random.Random(1))
        async with cluster.running([], clock, random.Random(1)) as embedded:
            for name in ("v0", "v1", "high"):
                spec: Any = {} if name == "high" else {"nodeName": "n", "terminationGracePeriodSeconds": 30}
                embedded.api.create(PODS, stories.pod(name, 1, **spec))
            async with Client(embedded.access(), clock=clock) as client:
                scene = Scene(embedded, client)
                tasks = [asyncio.ensure_future(each) for each in (scene.evictor.run(), scene.publisher.run())]
                await play(scene)
                await asyncio.sleep(20)
                for task in tasks:
                    task.cancel()
            return scene, embedded.api.list(PODS).items, embedded.api.list(NEW_EVENTS).items

    return virtualtime.run(run())


def deleted(pods: list[Tree]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]]


def test_victims_learn_why_and_are_deleted_with_their_grace() -> None:
    async def play(scene: Scene) -> None:
        scene.start("v0", "v1")

    scene, pods, events = played(play)
    assert deleted(pods) == ["v0", "v1"]
    result = [
        each for pod in pods for each in pod["status"].get("conditions", ()) if each["type"] == "DisruptionTarget"
    ]
    assert [(each["status"], each["reason"]) for each in result] == [("True", "PreemptionByScheduler")] * 2
    assert result[0]["message"] == "numalign: preempting to accommodate a higher priority pod"
    uid = next(pod["metadata"]["uid"] for pod in pods if pod["metadata"]["name"] == "high")
    assert [(each["reason"], each["action"], each["note"], each["related"]["name"]) for each in events] == [
        ("Preempted", "Preempting", f"Preempted by pod {uid} on node n", "high")
    ] * 2
    assert scene.woken == 0


def test_meanwhile_the_preemptor_stays_out_of_the_queue() -> None:
    waiting: list[dict[str, list[str]]] = []

    async def play(scene: Scene) -> None:
        scene.start("v0")
        scene.queue.activate([scene.pod("high").metadata.uid], 1.0)
        waiting.append(waitingpods.names(scene.queue))
        await asyncio.sleep(30)
        scene.queue.activate([scene.pod("high").metadata.uid], 31.0)
        waiting.append(waitingpods.names(scene.queue))

    played(play)
    assert waiting == [{"gated": ["high"]}, {"active": ["high"]}]


def test_a_victim_that_was_seen_to_go_before_the_answer_came_wakes_the_preemptor() -> None:
    async def play(scene: Scene) -> None:
        scene.start("v0")
        scene.there.discard("v0")

    scene, _, _ = played(play)
    assert (scene.woken, waitingpods.names(scene.queue)) == (1, {"active": ["high"]})


def test_a_terminating_victim_is_not_evicted_again() -> None:
    async def play(scene: Scene) -> None:
        scene.embedded.api.delete(PODS, "v0", "default")
        scene.start("v0")

    scene, pods, events = played(play)
    assert (deleted(pods), events, scene.gate.uids) == (["v0"], [], set())


def test_a_pod_made_again_under_the_name_is_spared() -> None:
    async def play(scene: Scene) -> None:
        victim = scene.pod("v0")
        scene.there.discard("v0")
        stale = structs.replace(victim, metadata=structs.replace(victim.metadata, uid="another"))
        scene.evictor.start(scene.pod("high"), "n", [stale])

    _, pods, events = played(play)
    assert (deleted(pods), events) == ([], [])


def test_a_call_that_fails_is_made_again() -> None:
    async def play(scene: Scene) -> None:
        fail(scene.client, times=2)
        scene.start("v0", "v1")

    _, pods, _ = played(play)
    assert deleted(pods) == ["v0", "v1"]


def test_where_that_does_not_help_the_pod_is_tried_anew() -> None:
    async def play(scene: Scene) -> None:
        fail(scene.client, times=100)
        scene.start("v0")
        scene.queue.nominate(scene.pod("high").metadata.uid, "n", 0.0)

    scene, pods, _ = played(play)
    assert deleted(pods) == []
    assert (scene.woken, waitingpods.names(scene.queue)) == (1, {"active": ["high"]})


def test_a_standby_replica_evicts_no_pod() -> None:
    async def play(scene: Scene) -> None:
        scene.leads = False
        scene.start("v0")

    _, pods, _ = played(play)
    assert deleted(pods) == []


def fail(client: Client, times: int) -> None:
    delete, left = client.delete, [times]

    async def failing(*args: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise errors.ServerFailure("delete", "Pod", 500, Status())
        await delete(*args)

    client.delete = failing  # type: ignore[method-assign, assignment]
