"""How long to wait after one more failure: doubling, jittered, and back to the start after a healthy while.

`watch` counts the failures of a resource with it. The numbers are those of client-go's reflector (kube-scheduler
spec 7.3)."""

from dataclasses import dataclass
from typing import Final

FIRST: Final = 0.8
LONGEST: Final = 30.0
HEALTHY: Final = 120.0


@dataclass
class Backoff:
    _next: float = FIRST
    _last: float = float("-inf")

    def failed(self, now: float, chance: float) -> float:
        """Seconds to wait: up to twice the step, so that clients that failed together do not retry together."""
        if now - self._last > HEALTHY:
            self._next = FIRST
        step, self._next = self._next, min(2 * self._next, LONGEST)
        wait = step * (1 + chance)
        self._last = now + wait
        return wait
