"""The scheduler's queue: pods to be tried, pods that back off, and pods that wait for something to change.

`scheduling` moves pods through it. Higher priority first, then who came first; after each rejection a pod backs off
1, 2, 4, 8, then 10 s (kube-scheduler spec 3). Pure: time is an argument."""

import heapq
from dataclasses import dataclass
from typing import Final, TypeVar

from numalign.simulator.controllers.framework.views import Key

N = TypeVar("N", int, float)

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
LEFTOVER: Final = 300.0
"""Seconds after which a waiting pod is tried though nothing has changed."""


@dataclass
class Entry:
    key: Key
    priority: int
    attempts: int = 0
    ready: float = 0.0
    """When its backoff ends."""
    turn: int = 0
    """Of its newest place in a heap; older places are void."""


class Waiting:
    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._active: list[tuple[int, int, Key]] = []
        self._later: list[tuple[float, int, Key]] = []
        self._parked: dict[Key, None] = {}
        self._turns = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def add(self, key: Key, priority: int) -> None:
        self._entries[key] = Entry(key, priority)
        self._activate(self._entries[key])

    def remove(self, key: Key) -> None:
        self._entries.pop(key, None)
        self._parked.pop(key, None)

    def take(self, now: float) -> Entry | None:
        """The next pod to try; it stays known until it is removed, rejected or put off."""
        self._ripen(now)
        if self._first_of(self._active) is None:
            return None
        return self._entries[heapq.heappop(self._active)[2]]

    def reject(self, entry: Entry, now: float) -> None:
        """No node takes it: wait for a change."""
        self._back_off(entry, now)
        self._parked[entry.key] = None
        self._schedule(entry, now + LEFTOVER)

    def put_off(self, entry: Entry, now: float) -> None:
        """Something went wrong that time may cure."""
        self._back_off(entry, now)
        self._schedule(entry, entry.ready)

    def wake(self) -> None:
        """Something has changed: every waiting pod is tried again when its backoff is over."""
        for key in self._parked:
            self._schedule(self._entries[key], self._entries[key].ready)
        self._parked.clear()

    def next_due(self, now: float) -> float | None:
        self._ripen(now)
        if self._first_of(self._active) is not None:
            return now
        first = self._first_of(self._later)
        return first[0] if first is not None else None

    def _ripen(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            _, turn, key = heapq.heappop(self._later)
            if self._is_current(turn, key):
                self._activate(self._entries[key])

    def _first_of(self, heap: list[tuple[N, int, Key]]) -> tuple[N, int, Key] | None:
        while heap and not self._is_current(heap[0][1], heap[0][2]):
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _is_current(self, turn: int, key: Key) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.turn == turn

    def _back_off(self, entry: Entry, now: float) -> None:
        entry.attempts += 1
        doubled: float = FIRST_BACKOFF * 2 ** min(entry.attempts - 1, 10)
        entry.ready = now + min(doubled, LONGEST_BACKOFF)

    def _activate(self, entry: Entry) -> None:
        self._parked.pop(entry.key, None)
        heapq.heappush(self._active, (-entry.priority, self._next_turn(entry), entry.key))

    def _schedule(self, entry: Entry, due: float) -> None:
        heapq.heappush(self._later, (due, self._next_turn(entry), entry.key))

    def _next_turn(self, entry: Entry) -> int:
        self._turns += 1
        entry.turn = self._turns
        return self._turns
