"""Events and conditions: in stock words, no more often than needed, and none lost in a burst."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from msgspec import structs

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.events.events import Reporter
from numalign.scheduler.events.publish import PendingReason, Publisher
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import NEW_EVENTS, PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.trees import Tree
from tests.embedded import schedulerstories as stories
from tests.unit.scheduler import waitingpods

Play = Callable[[Publisher, Cluster], Awaitable[None]]


def recorded(play: Play, pods: int = 1) -> tuple[list[Tree], list[Tree]]:
    """Events, and the pods, after some publishing on an embedded cluster without nodes."""

    async def run() -> tuple[list[Tree], list[Tree]]:
        clock = virtualtime.clock(random.Random(1))
        async with cluster.running([], clock, random.Random(1)) as embedded:
            for number in range(pods):
                embedded.api.create(PODS, stories.pod(f"p{number}", 1))
            async with Client(embedded.access(), clock=clock) as client:
                publisher = Publisher(client, Reporter("numalign", "numalign-host"))
                running = asyncio.ensure_future(publisher.run())
                await play(publisher, embedded)
                await asyncio.sleep(60)
                running.cancel()
            return embedded.api.list(NEW_EVENTS).items, embedded.api.list(PODS).items

    return virtualtime.run(run())


def pod(embedded: Cluster, name: str = "p0") -> Tree:
    return next(each for each in embedded.api.list(PODS).items if each["metadata"]["name"] == name)


def seen(tree: Tree) -> Pod:
    return decode.decode(Pod, tree)


def test_a_refused_pod_gets_an_event_and_a_condition() -> None:
    async def play(publisher: Publisher, embedded: Cluster) -> None:
        publisher.refused(
            seen(pod(embedded)), PendingReason("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
        )

    events, pods = recorded(play)
    assert [(each["reason"], each["action"], each["type"], each["note"]) for each in events] == [
        ("FailedScheduling", "Scheduling", "Warning", "0/1 nodes are available: 1 Insufficient cpu.")
    ]
    condition = pods[0]["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_condition_that_says_the_same_is_not_written_again() -> None:
    versions: list[str] = []

    async def play(publisher: Publisher, embedded: Cluster) -> None:
        for _ in range(3):
            publisher.refused(seen(pod(embedded)), PendingReason("Unschedulable", "m"))
            await asyncio.sleep(1)
            versions.append(pod(embedded)["metadata"]["resourceVersion"])

    recorded(play)
    assert len(set(versions)) == 1


def test_of_a_pod_that_is_bound_by_then_no_condition_is_written() -> None:
    async def play(publisher: Publisher, embedded: Cluster) -> None:
        found = seen(pod(embedded))
        publisher.refused(found, PendingReason("Unschedulable", "m"))
        publisher.scheduled(found.metadata, "a")

    assert "conditions" not in recorded(play)[1][0].get("status", {})


def test_a_bound_pod_gets_the_event_that_people_look_for() -> None:
    async def play(publisher: Publisher, embedded: Cluster) -> None:
        publisher.scheduled(seen(pod(embedded)).metadata, "a")

    event = recorded(play)[0][0]
    assert (event["reason"], event["action"], event["type"]) == ("Scheduled", "Binding", "Normal")
    assert event["note"] == "Successfully assigned default/p0 to a"
    assert (event["reportingController"], event["reportingInstance"]) == ("numalign", "numalign-host")


def test_a_rejected_pod_is_deleted_by_its_uid() -> None:
    async def play(publisher: Publisher, embedded: Cluster) -> None:
        first, second = (seen(pod(embedded, name)).metadata for name in ("p0", "p1"))
        publisher.cleared(first)
        publisher.cleared(structs.replace(second, uid="another"))

    assert [each["metadata"]["name"] for each in recorded(play, pods=2)[1]] == ["p1"]


def test_no_event_of_a_burst_is_lost() -> None:
    async def play(publisher: Publisher, embedded: Cluster) -> None:
        for number in range(5000):
            meta = waitingpods.pod(f"burst-{number}").metadata
            publisher.scheduled(meta, "a")

    events, _ = recorded(play)
    assert len(events) == 5000


def nominated(*waits: PendingReason) -> list[str]:
    """What the pod's status says after each."""
    said: list[str] = []

    async def play(publisher: Publisher, embedded: Cluster) -> None:
        for wait in waits:
            publisher.refused(seen(pod(embedded)), wait)
            await asyncio.sleep(1)
            said.append(pod(embedded)["status"].get("nominatedNodeName", ""))

    recorded(play)
    return said


def test_the_node_that_a_pod_waits_for_is_written_and_taken_back() -> None:
    waits = [PendingReason("Unschedulable", "m", node) for node in ("n1", None, "n2", "", None)]
    assert nominated(*waits) == ["n1", "n1", "n2", "", ""]


def test_a_nomination_can_be_taken_back_alone() -> None:
    found: list[Tree] = []

    async def play(publisher: Publisher, embedded: Cluster) -> None:
        publisher.refused(seen(pod(embedded)), PendingReason("Unschedulable", "m", "n1"))
        await asyncio.sleep(1)
        publisher.unnominated(seen(pod(embedded)))
        await asyncio.sleep(1)
        found.append(pod(embedded)["status"])

    recorded(play)
    assert "nominatedNodeName" not in found[0]
    assert found[0]["conditions"][0]["message"] == "m"
