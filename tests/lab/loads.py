"""Loads played on nodes, all nodes at the same time: pods one after the other until nothing fits, and what became of
each. A `Story` has all that tests look at, so that the lab can be cleared before they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.kube.resources import PODS
from numalign.lab.node import LabNode
from numalign.lab.spec import NodeSpec
from numalign.scheduler import profiles
from tests.lab import bodies, books, runtime
from tests.lab.books import Books
from tests.lab.live import LOOK, NAMESPACE, PATIENCE, Live
from tests.lab.sight import Sight

QUIET = 6.0
"""Seconds without any change after which nothing is under way any more; an agent pauses for some on a busy machine."""


class Chapter(Struct, frozen=True):
    """Pods that the node has, in the order of their admission, and what was said and written about them."""

    pods: list[Pod]
    books: Books


class Story(Struct, frozen=True, kw_only=True):
    """What became of a node's load."""

    node: NodeSpec
    waiting: list[str]
    rejected: list[str]
    full: Chapter
    begun: Chapter
    """After init containers have ended, and the others began."""


class Turn(Struct):
    """How far a node's load is."""

    node: LabNode
    pods: list[Pod]

    @property
    def waiting(self) -> list[str]:
        return [pod.metadata.name for pod in self.pods if not pod.spec.node_name]

    @property
    def rejected(self) -> list[str]:
        return [f"{pod.metadata.name}: {pod.status.message}" for pod in self.pods if pod.status.phase == "Failed"]

    @property
    def admitted(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name and pod.status.phase != "Failed"]


async def played(live: Live, names: Iterable[str]) -> dict[str, Story]:
    """By our scheduler."""
    nodes = [live.node(name) for name in names]
    async with Sight.of(live.client) as sight:
        await asyncio.gather(*(send(live, sight, node, profiles.NAME) for node in nodes))
        turns = await quiet(live, sight, nodes)
        full = {turn.node.name: await chapter(live, turn) for turn in turns}
        await asyncio.gather(*(live.remove(name) for turn in turns for name in turn.waiting))
        await asyncio.gather(*(begin(sight, turn) for turn in turns))
        begun = {turn.node.name: await chapter(live, turn) for turn in await quiet(live, sight, nodes)}
    return {name: told(turn, full[name], begun[name]) for turn in turns for name in [turn.node.name]}


def told(turn: Turn, full: Chapter, begun: Chapter) -> Story:
    return Story(node=turn.node.spec, waiting=turn.waiting, rejected=turn.rejected, full=full, begun=begun)


async def rejected(live: Live, names: Iterable[str], scheduler: str) -> list[str]:
    """The same pods, sent by another scheduler."""
    nodes = [live.node(name) for name in names]
    async with Sight.of(live.client) as sight:
        await asyncio.gather(*(send(live, sight, node, scheduler) for node in nodes))
        return [each for turn in turned(sight, nodes) for each in turn.rejected]


async def send(live: Live, sight: Sight, node: LabNode, scheduler: str) -> None:
    """One pod after the other, each when it is known what becomes of the last one."""
    for body in bodies.load(node.spec, scheduler):
        await live.client.create(PODS.within(NAMESPACE), body)
        await decided(live, sight, body["metadata"]["name"])


async def decided(live: Live, sight: Sight, name: str) -> Pod:
    """Once it has started, was turned away, or cannot be scheduled."""

    def found() -> Pod | None:
        pod = sight.pod(name)
        return pod if pod is not None and is_decided(pod) else None

    return await sight.until(found, lambda: f"{name} is not decided: {sight.pod(name)}; {scheduler_said(live)}")


def is_decided(pod: Pod) -> bool:
    refused = any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
    return pod.has_started or pod.status.is_finished or (refused and not pod.spec.node_name)


def scheduler_said(live: Live) -> str:
    part = live.lab.parts["scheduler"]
    return f"our scheduler was started {part.starts} times and said last: {part.last_words()}"


async def quiet(live: Live, sight: Sight, nodes: list[LabNode]) -> list[Turn]:
    """Once nobody writes anything any more, neither about pods nor in reports."""

    def found() -> list[Turn] | None:
        turns = turned(sight, nodes)
        started = all(pod.has_started for turn in turns for pod in turn.admitted)
        return turns if started and time.monotonic() - sight.changed > QUIET else None

    return await sight.until(found, lambda: f"it does not become quiet; {scheduler_said(live)}")


def turned(sight: Sight, nodes: list[LabNode]) -> list[Turn]:
    return [Turn(node, [pod for pod in sight.pods() if _is_for(pod, node)]) for node in nodes]


def _is_for(pod: Pod, node: LabNode) -> bool:
    return pod.metadata.name.rpartition("-")[0] == node.name


async def chapter(live: Live, turn: Turn) -> Chapter:
    pods = books.in_order_of_admission(turn.node, turn.admitted)
    return Chapter(pods, await books.read(turn.node, live.client))


async def begin(sight: Sight, turn: Turn) -> None:
    """Init containers end, until all pods run."""
    ends = {pod.metadata.name: _plain_inits(pod) for pod in turn.admitted}
    async with asyncio.timeout(PATIENCE):
        while waiting := [pod for pod in sight.pods() if pod.metadata.name in ends and pod.status.phase == "Pending"]:
            for pod in waiting:
                await runtime.end(turn.node, pod.metadata.uid, ends[pod.metadata.name])
            await asyncio.sleep(LOOK)


def _plain_inits(pod: Pod) -> set[str]:
    return {each.name for each in pod.spec.init_containers if not each.is_sidecar}
