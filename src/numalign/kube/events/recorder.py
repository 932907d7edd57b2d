"""Writes Events to the API server.

The agent calls `record`, which never waits: `run` is the task that writes, and a full queue drops Events. The
scheduler's `publish` has a queue of its own and calls `write`. `events` decides what is written. An Event that the
server rejects is dropped, because nothing depends on one."""

import asyncio
import logging
from datetime import datetime
from typing import Final

import msgspec

from numalign.kube import errors, request
from numalign.kube.client import Client
from numalign.kube.events.events import Correlator, Count, Occurrence, Reporter, Write
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

    def record(self, what: Occurrence) -> None:
        """Queues the occurrence, which happens now; `run` writes it."""
        clock = self._client.sender.clock
        write = self._correlator.happened(what, clock.now(), clock.wall())
        if write is not None:
            self._put(write)

    async def write(self, what: Occurrence, now: float, wall: datetime) -> None:
        """Returns when the Event is written or dropped. Callers keep the order of one object's Events."""
        write = self._correlator.happened(what, now, wall)
        if write is not None:
            await self._sent(write)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_all())
            group.create_task(self._look_for_due())

    async def drained(self) -> None:
        """Waits until everything that was recorded so far is written or dropped."""
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
                return await self._create_or_patch(write)
            except errors.Refusal as problem:
                LOG.info("Event rejected by the server, not retrying: %s", problem)
                break
            except errors.Unreachable as problem:
                LOG.info("Unable to write event (may retry after sleeping): %s", problem)
                await self._client.sender.clock.sleep(PAUSE)
        self._client.sender.metrics.events_dropped += 1
        return None

    async def _create_or_patch(self, write: Write) -> None:
        event = write.event
        if isinstance(write, Count) and event.series is not None:
            target = EVENTS.at(event.metadata.name, event.metadata.namespace)
            try:
                await self._client.patch(target, "merge", {"series": msgspec.to_builtins(event.series)})
                return
            except errors.NotFound:
                LOG.debug("Event %s was deleted; creating it again", event.metadata.full_name)
        # Not `client.create`: the answer is not decoded.
        await self._client.sender.call(request.create(EVENTS.within(event.metadata.namespace), event))
