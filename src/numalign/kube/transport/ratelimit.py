"""A bucket of tokens: how long a call has to wait so that no more than `rate` a second are sent, `burst` at once.

Off unless a client is given one: servers of today divide their attention themselves (kube-scheduler spec 7.4)."""

from dataclasses import dataclass


@dataclass
class Bucket:
    rate: float
    burst: int
    _free_at: float = float("-inf")

    def take(self, now: float) -> float:
        """Takes a token; returns the seconds to wait before the call may be sent."""
        # The time at which the bucket runs empty moves on by one interval per call.
        self._free_at = max(self._free_at, now - (self.burst - 1) / self.rate)
        wait = max(0.0, self._free_at - now)
        self._free_at += 1 / self.rate
        return wait
