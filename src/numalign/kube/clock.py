"""The clock and the event loop of a process.

`informer`, `leading`, `recorder` and `client` hold a `Clock`; tests pass one that jumps. Deadlines use `now`, which is
monotonic; `wall` is only written into objects (kube-scheduler spec 7.7). `runner` starts uvloop where it is
installed."""

import asyncio
import random
import time
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast


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


def event_loop_runner() -> asyncio.Runner:
    """uvloop where it is installed, otherwise asyncio's own event loop."""
    return asyncio.Runner(loop_factory=new_loop)


def new_loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    return cast(asyncio.AbstractEventLoop, import_module("uvloop").new_event_loop())
