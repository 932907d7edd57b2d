"""The kubelet's pods, followed by its pods socket: a table that is kept by events, so that nobody has to list them.

`main` runs `follow` beside the agent, which is asked to look at every change; `uids` asks for the table. While there is
no stream, or not all of it was heard yet, the kubelet is asked for a list (exporter spec 2.9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from numalign.agent.sources.pods import Change, LocalPod, PodEvent, PodsClient, PodsError

LOG: Final = logging.getLogger(__name__)
PAUSE: Final = 10.0
ABSENT: Final = 300.0
"""Seconds until a kubelet without a pods socket is asked again whether it has one."""


class PodsView:
    """For one event loop. `close` at the end."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._client = PodsClient(socket)
        self._pods: dict[str, LocalPod] = {}
        self._synced = False

    async def list(self) -> tuple[LocalPod, ...]:
        """PodsError where nobody can tell."""
        return tuple(self._pods.values()) if self._synced else await self._client.list()

    async def follow(self, heard: Callable[[], None]) -> None:
        """Until cancelled."""
        while True:
            pause, client = PAUSE, PodsClient(self._socket)
            try:
                async for event in client.watch():
                    self._take(event)
                    heard()
            except PodsError as problem:
                LOG.debug("the kubelet's pods are not followed: %s", problem)
                pause = ABSENT if problem.absent else PAUSE
            finally:
                # What comes before the next stream is not heard.
                self._synced, self._pods = False, {}
                await client.close()
            await asyncio.sleep(pause)

    def _take(self, event: PodEvent) -> None:
        if event.change is Change.SYNCED:
            self._synced = True
        elif event.pod is not None and event.change is Change.DELETED:
            self._pods.pop(event.pod.uid, None)
        elif event.pod is not None:
            self._pods[event.pod.uid] = event.pod

    async def close(self) -> None:
        await self._client.close()
