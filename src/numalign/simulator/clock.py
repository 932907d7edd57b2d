"""The embedded cluster's clock: one for real time, for virtual time and for tests that stand still.

`cluster` makes one and hands it to everybody in this room; it is a `kube.clock.Clock`, so that our own client runs on
it too. What differs is only where the seconds come from: the machine, an event loop with virtual time
(`virtualtime.clock`) or a function of a test. Nothing in this room asks `time` or `random` for anything."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta


class Clock:
    """`seconds` only grow; `began` is the time of day when they stood as they do now."""

    def __init__(self, seconds: Callable[[], float], began: datetime, chances: random.Random) -> None:
        self._seconds = seconds
        self._zero = began.astimezone(UTC) - timedelta(seconds=seconds())
        self._epoch = self._zero.timestamp()
        self._chances = chances
        self._text = (-1, "")

    def now(self) -> float:
        """Seconds that only grow."""
        return self._seconds()

    def wall(self) -> datetime:
        """The time of day, in UTC."""
        return self._zero + timedelta(seconds=self._seconds())

    def rfc3339(self, moment: float | None = None) -> str:
        """The time of day, now or at a `moment` that `now` once told, as objects carry it: 2026-11-16T05:00:00Z."""
        # Asked for with every write, and thousands of writes share a second.
        second = int(self._epoch + (self._seconds() if moment is None else moment))
        if self._text[0] != second:
            self._text = (second, text(datetime.fromtimestamp(second, UTC)))
        return self._text[1]

    def chance(self) -> float:
        """From 0 up to 1, for jitter."""
        return self._chances.random()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A block that raises TimeoutError if it takes longer."""
        return asyncio.timeout(seconds)


def real(chances: random.Random) -> Clock:
    """The machine's own time."""
    return Clock(time.monotonic, datetime.now(UTC), chances)


def text(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as `metadata.creationTimestamp` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
