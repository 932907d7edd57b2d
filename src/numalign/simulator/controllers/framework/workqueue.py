"""Which object a controller looks at next.

`runner` and the controllers' watches put keys in, the runner's task takes them out. A key waits at most once: one that
is added again keeps its place, or gets the earlier of two times. Failures wait longer each time, as in client-go.
Pure: time is an argument, and equal times come out in the order in which they were put in."""

import heapq
from typing import Final, Generic, TypeVar

from numalign.kube.backoff import Exponential

K = TypeVar("K")

RETRY: Final = Exponential(first=0.005, longest=1000.0)


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._failures: dict[K, int] = {}
        self._added = 0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: K, due: float) -> None:
        """It is to be looked at from then on."""
        if self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._added += 1
        heapq.heappush(self._heap, (due, self._added, key))

    def retry(self, key: K, now: float) -> None:
        """It did not work; later, and later still the next time."""
        self._failures[key] = self._failures.get(key, 0) + 1
        self.add(key, now + RETRY.pause(self._failures[key]))

    def forget(self, key: K) -> None:
        """It worked: the next failure is a first one."""
        self._failures.pop(key, None)

    def take(self, now: float) -> K | None:
        """The key that is due the longest, if any is."""
        due = self.next_due()
        if due is None or due > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def next_due(self) -> float | None:
        # A key that was moved forward left its old entry behind.
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
