"""How long a pod stays out of the way after an attempt that failed.

Twice as long each time, up to a limit; `queue` asks. Ends are cut to whole seconds, so that pods whose backoff ends in
the same second come out by priority and not by fractions (kube-scheduler spec 3.3, 3.8)."""

from __future__ import annotations

import math

from msgspec import Struct

from numalign.scheduler.queue.queued import Queued

NEVER = float("-inf")
NANOSECONDS = 1_000_000_000


class Backoff(Struct, frozen=True):
    """In seconds. A longest of 0: no backoff at all."""

    initial: float = 1.0
    longest: float = 10.0

    def duration(self, attempts: int, size: int = 1) -> float:
        """After so many failed attempts in a row, of a pod or a group of pods of that size."""
        if attempts == 0:
            return 0.0
        # Whole nanoseconds, because the stock scheduler shifts them: the limit is met where shifting it back says so.
        initial, longest = round(self.initial * NANOSECONDS), int(self.longest * NANOSECONDS * math.sqrt(size))
        doublings = attempts - 1
        return (longest if initial > longest >> doublings else initial << doublings) / NANOSECONDS

    def expiry(self, queued: Queued) -> float:
        """The second in which the backoff ends; long ago for a pod that has none."""
        attempts = queued.errors or queued.refused
        if attempts == 0 or self.longest == 0:
            return NEVER
        if queued.expiry is None:
            queued.expiry = float(math.floor(queued.since + self.duration(attempts)))
        return queued.expiry

    def is_on(self, queued: Queued, now: float) -> bool:
        """Whether the pod still has to wait; through the whole second in which its backoff ends it does."""
        return self.expiry(queued) >= math.floor(now)
