"""The kubelet's pods by its stream while there is one, by a list while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from numalign.agent.sources import pods
from numalign.agent.sources.pods import PodsView
from numalign.api.decode import protobuf
from numalign.process.rpc import CallFailed, Service
from tests.unit.agent.podresources_server import serving


def pod(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"u-{name}"}, "status": {"phase": "Running"}}


def event(change: pods.PodEventType, name: str = "") -> bytes:
    return protobuf.encode_message({"type": int(change)} | ({"pod": pod(name)} if name else {}), pods.EVENT)


class Kubelet:
    def __init__(self, *events: bytes) -> None:
        self.events, self.lists = events, 0
        self.told, self.over = asyncio.Event(), asyncio.Event()

    def service(self) -> Service:
        return Service(pods.SERVICE, {"ListPods": self.list}, {"WatchPods": self.watch})

    async def list(self, _: bytes) -> bytes:
        self.lists += 1
        return protobuf.encode_message({"pods": [protobuf.encode_message(pod("listed"), pods.POD)]}, pods.LIST)

    async def watch(self, _: bytes) -> AsyncIterator[bytes]:
        for each in self.events:
            yield each
        self.told.set()
        await self.over.wait()
        raise CallFailed("RESOURCE_EXHAUSTED", "the client is too slow")


def seen(socket: Path, *events: bytes, end: bool = False) -> tuple[list[str], int]:
    """Names of the pods in the end, and how often the kubelet had to list them."""

    async def story() -> tuple[list[str], int]:
        kubelet, view, heard = Kubelet(*events), PodsView(socket), asyncio.Semaphore(0)
        async with serving(socket, kubelet.service()):
            task = asyncio.create_task(view.follow(heard.release))
            for _ in events:
                await heard.acquire()
            if end:
                kubelet.over.set()
                while view._synced:
                    await asyncio.sleep(0.01)
            names = [each.name for each in await view.list()]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await view.close()
        return names, kubelet.lists

    return asyncio.run(story())


CHANGES = (event(pods.PodEventType.ADDED, "a"), event(pods.PodEventType.ADDED, "b"), event(pods.PodEventType.SYNCED))


def test_a_synced_stream_is_enough(socket: Path) -> None:
    assert seen(socket, *CHANGES, event(pods.PodEventType.DELETED, "a")) == (["b"], 0)


def test_a_stream_that_is_not_synced_is_not_enough(socket: Path) -> None:
    assert seen(socket, *CHANGES[:2]) == (["listed"], 1)


def test_an_ended_stream_is_not_enough(socket: Path) -> None:
    assert seen(socket, *CHANGES, end=True) == (["listed"], 1)
