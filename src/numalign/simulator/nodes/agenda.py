"""What happens next, for thousands of nodes, in one heap: no node has a task or a timer of its own.

Nodes, heartbeats and publishers enter what they will do and when; `fleet` runs what is due, in the order of time, and
in the order of entering where times are equal."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Entry:
    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        # It stays in the heap until its time comes, which is cheaper than taking it out.
        self.action = None


class Agenda:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Entry]] = []
        self._entered = 0
        self.earlier: Action = _nothing
        """Called when something was entered that comes before everything else."""

    def at(self, moment: float, action: Action) -> Entry:
        entry = Entry(action)
        self._entered += 1
        heapq.heappush(self._heap, (moment, self._entered, entry))
        if self._heap[0][2] is entry:
            self.earlier()
        return entry

    def next(self) -> float | None:
        """When something is to be done; what was cancelled is forgotten on the way."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run(self, now: float, most: int = 1_000_000) -> int:
        """Do what is due, and what that makes due at once, but no more than so many; how many it were."""
        done = 0
        while done < most and (moment := self.next()) is not None and moment <= now:
            action = heapq.heappop(self._heap)[2].action
            if action is not None:
                action()
                done += 1
        return done


def _nothing() -> None:
    pass
