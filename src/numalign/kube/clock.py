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
        """Monotonic seconds."""

    def wall(self) -> datetime:
        """The time of day, in UTC."""

    def chance(self) -> float:
        """A random number in [0, 1), for jitter."""

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """A context that raises TimeoutError after `seconds`."""


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
    """MicroTime, as in Lease and Event: 2026-11-16T03:19:35.000123Z."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
