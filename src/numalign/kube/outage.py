"""Limits what a long failure logs: its beginning, ever rarer reminders, and its end.

Informers and leader election hold an `Outage` each. A `SharedOutage` belongs to a client: when its server cannot be
reached, all watches fail for the same reason, and the log needs to say it once."""

from dataclasses import dataclass, field
from typing import Final

FIRST_INTERVAL: Final = 15.0
LONGEST_INTERVAL: Final = 900.0
"""Seconds between two log lines: the first interval and the longest."""
HEALTHY_SECONDS: Final = 120.0
"""Seconds of success after which a failure starts a new outage."""


@dataclass
class Outage:
    _since: float | None = None
    _pause: float = FIRST_INTERVAL
    _quiet_until: float = float("-inf")
    _over: float = float("-inf")
    _logged: bool = False

    def failed(self, now: float) -> float | None:
        """How long the outage has lasted, if it should be logged now."""
        if self._since is None:
            self._since = now
            if now - self._over > HEALTHY_SECONDS:
                self._pause, self._quiet_until = FIRST_INTERVAL, now
        if now < self._quiet_until:
            return None
        self._logged = True
        self._quiet_until, self._pause = now + self._pause, min(2 * self._pause, LONGEST_INTERVAL)
        return now - self._since

    def worked(self, now: float) -> float | None:
        """How long the outage lasted, if it was logged."""
        if self._since is None:
            return None
        lasted, logged = now - self._since, self._logged
        self._since, self._over, self._logged = None, now, False
        return lasted if logged else None


@dataclass
class SharedOutage:
    """One outage that several callers notice; it ends when all of them have succeeded again."""

    _outage: Outage = field(default_factory=Outage)
    _failing: set[str] = field(default_factory=set)

    def failed(self, caller: str, now: float) -> float | None:
        """How long the outage has lasted, if it should be logged now."""
        self._failing.add(caller)
        return self._outage.failed(now)

    def worked(self, caller: str, now: float) -> float | None:
        """How long the outage lasted, if it was logged and this was the last caller that failed."""
        self._failing.discard(caller)
        return None if self._failing else self._outage.worked(now)
