"""Pods that are gone: who is remembered, and whose grace period is still to end.

The ledger notes every pod that finished or was deleted, so that a late word about it is recognised as such, and every
pod that may run on after its object was deleted. Time is whatever the ledger is told."""

from __future__ import annotations

import heapq
from typing import Final

from numalign.api.objects.pod import Pod

AFTER_GRACE: Final = 10.0
"""Seconds that a deleted pod stays charged beyond its grace period."""
REMEMBERED: Final = 600.0
"""Seconds in which a late word about a pod that ended is recognised as such."""


class Departures:
    """Who left, and when it is surely over."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._waiting: list[tuple[float, str, str]] = []

    def __contains__(self, uid: str) -> bool:
        return uid in self._left

    def note(self, uid: str, now: float) -> None:
        self._left.pop(uid, None)
        self._left[uid] = now

    def wait_for(self, pod: Pod, uid: str, node: str, now: float) -> float:
        """When a pod that was deleted while it ran has surely stopped on the node."""
        grace = pod.metadata.deletion_grace_period_seconds
        seconds = pod.spec.termination_grace_period_seconds if grace is None else grace
        until = now + max(seconds, 0) + AFTER_GRACE
        heapq.heappush(self._waiting, (until, uid, node))
        return until

    def forgotten(self, now: float) -> list[str]:
        """Who left so long ago that nobody has to know any more; each is told once."""
        found = []
        while self._left and next(iter(self._left.values())) <= now - REMEMBERED:
            found.append(next(iter(self._left)))
            del self._left[found[-1]]
        return found

    def due(self, now: float) -> list[tuple[float, str, str]]:
        """Time, uid and node of waits that are over."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting))
        return found
