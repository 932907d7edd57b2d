"""How long a pod stays out of the way after an attempt that failed.

Twice as long each time, up to a limit; `queue` asks. Ends are cut to whole seconds, so that pods whose backoff ends in
the same second come out by priority and not by fractions (kube-scheduler spec 3.3, 3.8)."""

from __future__ import annotations

import math

from msgspec import Struct

from numalign.kube.backoff import Exponential
from numalign.scheduler.queue.queued import QueuedPod

NEVER = float("-inf")


class PodBackoff(Struct, frozen=True):
    """In seconds. A longest of 0: no backoff at all."""

    initial: float = 1.0
    longest: float = 10.0

    def duration(self, attempts: int) -> float:
        """After so many failed attempts in a row."""
        return Exponential(self.initial, self.longest).pause(attempts)

    def expiry(self, queued: QueuedPod) -> float:
        """The second in which the backoff ends; long ago for a pod that has none."""
        attempts = queued.errors or queued.refused
        if attempts == 0 or self.longest == 0:
            return NEVER
        if queued.expiry is None:
            queued.expiry = float(math.floor(queued.since + self.duration(attempts)))
        return queued.expiry

    def is_on(self, queued: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait; through the whole second in which its backoff ends it does."""
        return self.expiry(queued) >= math.floor(now)
