"""Loads played on nodes, all nodes at the same time: pods one after the other, and what became of each."""

from __future__ import annotations

import asyncio
import time

from msgspec import Struct

from numalign.api.pod import Pod
from numalign.kube.resources import PODS
from numalign.lab.node import LabNode
from numalign.scheduler import profiles
from tests.lab import fleet
from tests.lab.live import LOOK, NAMESPACE, PATIENCE, Live


class Story(Struct):
    """What became of a node's load."""

    placed: list[Pod]
    """In the order in which the kubelet saw them."""
    waiting: list[str]
    rejected: list[str]


async def played(live: Live, names: list[str], scheduler: str = profiles.NAME) -> dict[str, Story]:
    told = await asyncio.gather(*(play(live, live.node(name), scheduler) for name in names))
    return dict(zip(names, told, strict=True))


async def play(live: Live, node: LabNode, scheduler: str) -> Story:
    """One pod after the other, so that the order of admission is known."""
    story = Story([], [], [])
    for body in fleet.load(node.spec, scheduler):
        name = body["metadata"]["name"]
        await live.client.create(PODS.within(NAMESPACE), body)
        pod = await decided(live, name)
        if not pod.spec.node_name:
            story.waiting.append(name)
        elif pod.status.phase == "Failed":
            story.rejected.append(f"{name}: {pod.status.message}")
        else:
            story.placed.append(pod)
    return story


def scheduler_said(live: Live) -> str:
    part = live.lab.parts["scheduler"]
    return f"our scheduler was started {part.starts} times and said last: {part.last_words()}"


async def decided(live: Live, name: str) -> Pod:
    """Once it has started, was turned away, or cannot be scheduled."""
    until = time.monotonic() + PATIENCE
    while True:
        pod = await live.client.get(PODS.at(name, NAMESPACE))
        refused = any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
        if pod.has_started or pod.status.is_finished or (refused and not pod.spec.node_name):
            return pod
        assert time.monotonic() < until, f"{name} is not decided: {pod.status}; {scheduler_said(live)}"
        await asyncio.sleep(LOOK)
