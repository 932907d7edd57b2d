"""The queue of Events between the scheduler and the API server.

`publish` calls `record`, which never waits; `run` is a task. Events use the calls that bindings leave free: as many are
written at a time as `free_calls` allows. While bindings use all of them, an Event waits for `LONGEST_WAIT`, then a few
are written at a time beside the bindings. Events of one pod are written in the order in which they happened, with the
time at which they happened. A burst never drops one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from numalign.kube.client import Client
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.events.recorder import Recorder

LONGEST_WAIT: Final = 10.0
"""Seconds after which an Event no longer waits for bindings to leave a call free."""
BESIDE_BINDINGS: Final = 4
"""Events written at a time once the oldest has waited that long."""
PAUSE: Final = 0.05
"""Seconds between checks whether bindings have left a call free."""


class PendingEvent(Struct, frozen=True, gc=False):
    uid: str
    occurrence: Callable[[], Occurrence]
    now: float


class EventQueue:
    def __init__(self, client: Client, reporter: Reporter, free_calls: Callable[[], int]) -> None:
        self._clock = client.sender.clock
        self._recorder = Recorder(client, reporter)
        self._free_calls = free_calls
        self._waiting: deque[PendingEvent] = deque()
        self._writing: dict[str, list[PendingEvent]] = {}
        """By uid of a pod whose Event is being written: later Events of the same pod."""
        self._wake, self._written, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()

    def record(self, occurrence: Occurrence) -> None:
        self.record_later(occurrence.regarding.uid, lambda: occurrence)

    def record_later(self, uid: str, occurrence: Callable[[], Occurrence]) -> None:
        """It happens now, to the object with this uid. `occurrence` is called when the Event is written."""
        self._waiting.append(PendingEvent(uid, occurrence, self._clock.now()))
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._dispatch(group))

    async def drained(self) -> None:
        """Until everything that was recorded so far is written or dropped."""
        await self._idle.wait()

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._may_write()
                event = self._waiting.popleft()
                if event.uid in self._writing:
                    self._writing[event.uid].append(event)
                else:
                    self._writing[event.uid] = []
                    group.create_task(self._write(event))

    async def _may_write(self) -> None:
        """Until one more Event may be written."""
        while (allowed := self._allowed()) <= len(self._writing):
            if allowed:
                self._written.clear()
                await self._written.wait()
            else:
                await self._clock.sleep(PAUSE)

    def _allowed(self) -> int:
        """Events that may be written at a time."""
        waited = self._clock.now() - self._waiting[0].now
        return max(self._free_calls(), BESIDE_BINDINGS if waited >= LONGEST_WAIT else 0)

    async def _write(self, event: PendingEvent) -> None:
        later = self._writing[event.uid]
        while True:
            age = timedelta(seconds=self._clock.now() - event.now)
            await self._recorder.write(event.occurrence(), event.now, self._clock.wall() - age)
            if not later:
                break
            event = later.pop(0)
        del self._writing[event.uid]
        self._written.set()
        if not self._waiting and not self._writing:
            self._idle.set()
