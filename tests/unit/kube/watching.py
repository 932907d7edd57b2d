"""An informer beside a stub, and what its handler heard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.resources import PODS
from numalign.kube.transport.transport import Limits
from numalign.kube.watch.informer import Informer, Options
from numalign.kube.watch.store import Change
from tests.unit.kube.clocks import FastClock
from tests.unit.kube.stub import Stub, access, serving
from tests.unit.kube.stubhttp import Doc

QUICK = Limits(call_seconds=0.5)
"""A server that says nothing is given up soon."""

BY_LIST = Options(initial_events=False, page=2)


def pod(name: str, node: str = "") -> Doc:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": node}}


def told(change: Change[Pod]) -> str:
    """+a added, ~a updated, -a deleted, each with the node it is on."""
    sign = "+" if change.old is None else "-" if change.new is None else "~"
    thing = change.new or change.old
    assert thing is not None
    return f"{sign}{thing.metadata.name}{thing.spec.node_name}"


class Watcher:
    def __init__(self, client: Client, options: Options) -> None:
        self.changes: list[Change[Pod]] = []
        self.client = client
        self.metrics = client.sender.metrics
        self.informer = Informer(client, PODS.everywhere(), self._handle, options)
        self._news = asyncio.Event()

    @property
    def heard(self) -> list[str]:
        return list(map(told, self.changes))

    async def until(self, stub: Stub) -> None:
        """The store holds what the server holds. Where it does not, the handler is going to hear of it."""
        while self.versions() != stub.versions("pods"):
            self._news.clear()
            await self._news.wait()

    async def heard_of(self, what: str) -> None:
        while what not in self.heard:
            self._news.clear()
            await self._news.wait()

    def versions(self) -> dict[tuple[str, str], str]:
        every = [each.metadata for each in self.informer.store]
        return {(meta.namespace, meta.name): meta.resource_version for meta in every}

    def _handle(self, change: Change[Pod]) -> None:
        self.changes.append(change)
        self._news.set()


@asynccontextmanager
async def watching(stub: Stub, options: Options = BY_LIST, clock: Clock | None = None) -> AsyncIterator[Watcher]:
    """Entered once what was there is in the store."""
    async with serving(stub), Client(access(stub), QUICK, clock=clock or FastClock()) as client:
        watcher = Watcher(client, options)
        task = asyncio.create_task(watcher.informer.run())
        try:
            await watcher.informer.synced()
            yield watcher
        finally:
            task.cancel()
            await asyncio.wait([task])
