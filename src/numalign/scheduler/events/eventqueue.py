"""Events in line behind bindings: whoever waits for a node comes first, who wants to read about it a moment later.

`publish` calls `record`, which never waits; `run` is a task. Each line has a recorder, and all events of one pod go
through the same line, in order. While many pods are on their way to a node, events let them pass for a few seconds;
none is left out because of a burst, and each tells when it happened, however late it is written."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.events.recorder import Recorder

LINES: Final = 4
AT_ONCE: Final = 16
"""Events that a line has on its way before it looks again whether there are bindings to let pass."""
LONGEST_WAIT: Final = 10.0
"""Seconds that an event lets bindings pass; under a load that does not end, events flow this much later."""
PAUSE: Final = 0.1


class Waiting(Struct, frozen=True, gc=False):
    told: Callable[[], Occurrence]
    now: float


class Lines:
    def __init__(self, client: Client, reporter: Reporter, is_busy: Callable[[], bool]) -> None:
        self._clock = client.sender.clock
        self._lines = [_Line(Recorder(client, reporter), self._clock, is_busy) for _ in range(LINES)]

    def record(self, what: Occurrence) -> None:
        self.record_later(what.regarding.uid, lambda: what)

    def record_later(self, uid: str, told: Callable[[], Occurrence]) -> None:
        """What happened now to the one with this uid; it is put into words when it is written."""
        self._lines[zlib.crc32(uid.encode()) % LINES].put(Waiting(told, self._clock.now()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for line in self._lines:
                group.create_task(line.run())

    async def drained(self) -> None:
        """Until everything noted so far is written or given up."""
        for line in self._lines:
            await line.drained()


class _Line:
    """Feeds a recorder no faster than it writes."""

    def __init__(self, recorder: Recorder, clock: Clock, is_busy: Callable[[], bool]) -> None:
        self._recorder, self._clock, self._is_busy = recorder, clock, is_busy
        self._waiting: deque[Waiting] = deque()
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()

    def put(self, waiting: Waiting) -> None:
        if not self._waiting:
            self._idle.clear()
            self._wake.set()
        self._waiting.append(waiting)

    async def drained(self) -> None:
        await self._idle.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._feed())

    async def _feed(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._turn()
                now, wall = self._clock.now(), self._clock.wall()
                for _ in range(min(AT_ONCE, len(self._waiting))):
                    event = self._waiting.popleft()
                    self._recorder.record(event.told(), event.now, wall - timedelta(seconds=now - event.now))
                await self._recorder.drained()
            self._idle.set()

    async def _turn(self) -> None:
        while self._is_busy() and self._clock.now() - self._waiting[0].now < LONGEST_WAIT:
            await self._clock.sleep(PAUSE)
