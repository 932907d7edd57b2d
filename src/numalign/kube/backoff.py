"""Exponential back-off: how long to wait after a number of failures in a row.

`Exponential` is the rule of everything that retries: API calls, bindings, evictions, the scheduling queue, and the
controllers and kubelets of the embedded cluster. `BackoffManager` counts the failures of a watch. Pure: time and chance
are arguments."""

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

MOST_STEPS: Final = 64
"""Every limit is reached long before, and a float stays finite."""


class Exponential(Struct, frozen=True):
    """Seconds: the first pause, and the longest. Each pause is `factor` times the one before."""

    first: float
    longest: float
    factor: float = 2.0

    def pause(self, failures: int) -> float:
        """Seconds to wait after this number of failures in a row; 0 after none."""
        if failures <= 0:
            return 0.0
        return min(self.first * self.factor ** min(failures - 1, MOST_STEPS), self.longest)


# As client-go's reflector (kube-scheduler spec 7.3).
REFLECTOR: Final = Exponential(first=0.8, longest=30.0)
HEALTHY: Final = 120.0
"""Seconds without a failure after which the next pause is the first one again."""


@dataclass
class BackoffManager:
    _failures: int = 0
    _last: float = float("-inf")

    def failed(self, now: float, chance: float) -> float:
        """Counts a failure; returns the seconds to wait, up to twice the step: clients must not retry together."""
        if now - self._last > HEALTHY:
            self._failures = 0
        self._failures += 1
        wait = REFLECTOR.pause(self._failures) * (1 + chance)
        self._last = now + wait
        return wait
