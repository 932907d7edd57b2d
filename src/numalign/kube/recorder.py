"""Events written beside everything else: noted at once, sent when there is time, dropped before they get in the way.

The scheduler's publisher calls `record`, which never waits; `run` is a task. What to write is decided in `events`.
An event the server refuses is dropped: events are for people, and nothing depends on one."""

import asyncio
import logging
from datetime import datetime
from typing import Final

import msgspec

from numalign.kube import errors, request
from numalign.kube.client import Client
from numalign.kube.events import Correlator, Count, Occurrence, Reporter, Write
from numalign.kube.resources import EVENTS

LOG: Final = logging.getLogger(__name__)
LONGEST_QUEUE: Final = 1000
TRIES: Final = 12
PAUSE: Final = 10.0
ROUND: Final = 60.0
"""Seconds between checks for series that are due."""


class Recorder:
    def __init__(self, client: Client, reporter: Reporter) -> None:
        self._client = client
        self._correlator = Correlator(reporter)
        self._queue: asyncio.Queue[Write] = asyncio.Queue(LONGEST_QUEUE)

    def record(self, what: Occurrence, now: float | None = None, wall: datetime | None = None) -> None:
        """Queues an occurrence; without a time, it happened now."""
        clock = self._client.sender.clock
        write = self._correlator.happened(what, clock.now() if now is None else now, wall or clock.wall())
        if write is not None:
            self._put(write)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_all())
            group.create_task(self._look_for_due())

    async def drained(self) -> None:
        """Waits until all queued events are written or dropped."""
        await self._queue.join()

    def _put(self, write: Write) -> None:
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            self._client.sender.metrics.events_dropped += 1

    async def _look_for_due(self) -> None:
        clock = self._client.sender.clock
        while True:
            await clock.sleep(ROUND)
            for write in self._correlator.due(clock.now()):
                self._put(write)

    async def _send_all(self) -> None:
        while True:
            write = await self._queue.get()
            try:
                await self._sent(write)
            finally:
                self._queue.task_done()

    async def _sent(self, write: Write) -> None:
        for _ in range(TRIES):
            try:
                return await self._write(write)
            except errors.Refusal as problem:
                return self._dropped(problem)
            except errors.Unreachable as problem:
                LOG.info("Event delayed: %s", problem)
                await self._client.sender.clock.sleep(PAUSE)
        self._client.sender.metrics.events_dropped += 1

    async def _write(self, write: Write) -> None:
        event = write.event
        if isinstance(write, Count) and event.series is not None:
            target = EVENTS.at(event.metadata.name, event.metadata.namespace)
            try:
                await self._client.patch(target, "merge", {"series": msgspec.to_builtins(event.series)})
                return
            except errors.NotFound:
                LOG.debug("Event %s is gone; writing it again", event.metadata.full_name)
        # The answer is not needed.
        await self._client.sender.call(request.create(EVENTS.within(event.metadata.namespace), event))

    def _dropped(self, problem: errors.Refusal) -> None:
        LOG.info("Event dropped: %s", problem)
        self._client.sender.metrics.events_dropped += 1
