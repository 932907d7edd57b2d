"""Time as an argument: what the loops of this room ask for the hour, and how they wait.

`informer`, `leading`, `recorder` and `client` hold a `Clock`; a test hands them one that jumps. Deadlines go by `now`,
which never jumps back; `wall` is only written into objects (kube-scheduler spec 7.7)."""

import asyncio
import random
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds that only grow."""

    def wall(self) -> datetime:
        """The time of day, in UTC."""

    def chance(self) -> float:
        """From 0 up to 1, for jitter."""

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A block that raises TimeoutError if it takes longer."""


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def chance(self) -> float:
        return random.random()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)


def microtime(moment: datetime) -> str:
    """As Lease and Event carry it: 2026-11-16T03:19:35.000123Z."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
