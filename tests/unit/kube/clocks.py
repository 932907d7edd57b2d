"""Clocks for tests: one that skips waits, and one that a test advances."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

R = TypeVar("R")

START = datetime(2026, 11, 16, tzinfo=UTC)
BOUND = 30.0
"""Seconds that a test with sockets may take before it fails."""


class FastClock:
    """A thousand seconds in one."""

    speed = 1000.0

    def now(self) -> float:
        return time.monotonic() * self.speed

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.now())

    def chance(self) -> float:
        return 0.5

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.speed)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds / self.speed)


class HandClock:
    """Moves only when slept on or set; remembers how long was slept."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.time)

    def chance(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(BOUND)


def run(test: Coroutine[Any, Any, R]) -> R:
    """The test in a loop of its own, bounded in time."""

    async def bounded() -> R:
        async with asyncio.timeout(BOUND):
            return await test

    return asyncio.run(bounded())
