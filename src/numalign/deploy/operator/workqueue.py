"""A queue of keys that are due at a time: each at most once, and failed ones later and later.

`controller` has one worker, so a key is never processed twice at a time. A key that is added while it is processed is
due again afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final, Generic, TypeVar

from numalign.kube.backoff import Exponential
from numalign.kube.clock import Clock

K = TypeVar("K", bound=str)

SETTLE: Final = 0.2
"""Seconds from a change to its reconciliation: changes come in groups, and the watch follows our own writes."""
BACKOFF: Final = Exponential(first=1.0, longest=30.0)
"""Shorter than the minute in which drift is repaired."""


class WorkQueue(Generic[K]):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[K, float] = {}
        self._failures: Counter[K] = Counter()
        self._changed = asyncio.Event()
        self.adds: Counter[K] = Counter()
        self.retries: Counter[K] = Counter()

    def __len__(self) -> int:
        """Keys that are due now."""
        now = self._clock.now()
        return sum(due <= now for due in self._due.values())

    def add(self, key: K, after: float = SETTLE) -> None:
        """The earliest time counts; a failed key keeps its distance."""
        due = self._clock.now() + max(after, BACKOFF.pause(self._failures[key]))
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self.adds[key] += 1
            self._changed.set()

    def failed(self, key: K) -> None:
        """Due again after a pause that grows with the number of failures in a row."""
        self._failures[key] += 1
        self.retries[key] += 1
        pause = BACKOFF.pause(self._failures[key])
        self._due[key] = self._clock.now() + pause * (1 - 0.2 * self._clock.chance())
        self._changed.set()

    def failures(self, key: K) -> int:
        """Failures in a row."""
        return self._failures[key]

    def succeeded(self, key: K) -> None:
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Waits for the next key that is due, and takes it out."""
        while True:
            self._changed.clear()
            key = min(self._due, key=lambda each: self._due[each], default=None)
            pause = float("inf") if key is None else self._due[key] - self._clock.now()
            if key is not None and pause <= 0:
                del self._due[key]
                return key
            await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        if seconds == float("inf"):
            await self._changed.wait()
            return
        try:
            async with self._clock.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
