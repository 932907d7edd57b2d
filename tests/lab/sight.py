"""Pods and reports of a lab as they are now, told by the server rather than asked for again and again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.resources import PODS, TOPOLOGIES
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change

T = TypeVar("T")
PATIENCE = 60.0
LOOK = 0.05
NAMESPACE = "default"


class Sight:
    def __init__(self, client: Client) -> None:
        self.changed = time.monotonic()
        """When anything did, last. NFD's updater writes its zones in another order every three seconds, which is
        nothing new."""
        self._pods = Informer(client, PODS.within(NAMESPACE), self._note)
        self._reports = Informer(client, TOPOLOGIES.everywhere(), self._note_report)

    @staticmethod
    @contextlib.asynccontextmanager
    async def of(client: Client) -> AsyncIterator[Sight]:
        sight = Sight(client)
        tasks = [asyncio.create_task(each.run()) for each in (sight._pods, sight._reports)]
        try:
            await asyncio.gather(sight._pods.synced(), sight._reports.synced())
            yield sight
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def pods(self) -> list[Pod]:
        return list(self._pods.store)

    def pod(self, name: str) -> Pod | None:
        return self._pods.store.get(name, NAMESPACE)

    async def until(self, found: Callable[[], T | None], otherwise: Callable[[], str]) -> T:
        """AssertionError with `otherwise` where it does not come to that."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if answer := found():
                return answer
            await asyncio.sleep(LOOK)
        raise AssertionError(otherwise())

    def _note(self, _: Change[Any]) -> None:
        self.changed = time.monotonic()

    def _note_report(self, change: Change[NodeResourceTopology]) -> None:
        old, new = change.old, change.new
        if old is None or new is None or normalise.normalise(old) != normalise.normalise(new):
            self._note(change)
