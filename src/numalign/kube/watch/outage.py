"""What of a failure that goes on is worth a line in a log: its beginning, ever rarer signs that it lasts, and its end.

`informer` asks after each try, so that a server which is away for an hour is told of in a few lines and not at every
try. What fails again soon after it worked goes on where it was. Pure: time is an argument."""

from dataclasses import dataclass
from typing import Final

FIRST: Final = 15.0
LONGEST: Final = 900.0
"""Seconds between two log lines: the first interval and the longest."""
HEALTHY: Final = 120.0
"""Seconds of success after which a failure starts a new outage."""


@dataclass
class Outage:
    _since: float | None = None
    _pause: float = FIRST
    _quiet_until: float = float("-inf")
    _over: float = float("-inf")
    _said: bool = False

    def failed(self, now: float) -> float | None:
        """How long the outage has lasted, if it should be logged now."""
        if self._since is None:
            self._since = now
            if now - self._over > HEALTHY:
                self._pause, self._quiet_until = FIRST, now
        if now < self._quiet_until:
            return None
        self._said = True
        self._quiet_until, self._pause = now + self._pause, min(2 * self._pause, LONGEST)
        return now - self._since

    def worked(self, now: float) -> float | None:
        """How long the outage lasted, if it was logged."""
        if self._since is None:
            return None
        lasted, said = now - self._since, self._said
        self._since, self._over, self._said = None, now, False
        return lasted if said else None
