"""Decides when to read the node again. Pure: time is an argument.

`triggers` reports requests and asks for the time of the next snapshot. Requests that come close together make one
snapshot, shortly after the first, and snapshots keep a minimum distance. No request is lost: one that comes during a
snapshot makes another. An urgent request does not wait, once per minimum distance. Without requests there is a snapshot
every period, with jitter, so that the nodes of a cluster do not all write at once."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

DEAR: Final = 0.004
"""CPU seconds of a snapshot, assumed before the first is measured."""
START: Final = "start"
PERIOD: Final = "period"


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds."""

    period: float = 60.0
    jitter: float = 0.1
    """The part of a period that jitter may take away; a period is never longer."""
    settle: float = 0.1
    """From a request to its snapshot: the kubelet changes several files for one pod."""
    gap: float = 1.0
    """Minimum distance of two snapshots."""
    share: float = 0.0
    """The share of a core that snapshots may use under constant requests: their distance grows then. 0: no limit."""
    longest_gap: float = 5.0


class Due(Struct):
    """The next snapshot: its time and its reasons. Times are monotonic."""

    pace: Pace
    last: float | None = None
    """When the last snapshot was taken."""
    periodic: float = 0.0
    requested: float | None = None
    urgent: float | None = None
    last_urgent: float = float("-inf")
    """When the last urgent snapshot was due."""
    later: tuple[tuple[float, str], ...] = ()
    """Scheduled snapshots, earliest first."""
    reasons: frozenset[str] = frozenset({START})
    cost: float = 0.0
    """CPU seconds of a snapshot, as a sliding mean."""

    def request(self, reason: str, now: float, *, urgent: bool = False) -> None:
        """`urgent`: the kubelet rejects pods until the snapshot is published, so it does not keep the distance."""
        self.reasons |= {reason}
        if urgent and self.urgent is None:
            self.urgent = self.last_urgent = max(now, self.last_urgent + self.pace.gap)
        if self.requested is None:
            self.requested = now + self.pace.settle

    def request_at(self, reason: str, moment: float) -> None:
        """Schedules a snapshot at that time, whatever happens before."""
        self.later = tuple(sorted({*self.later, (moment, reason)}))

    def at(self) -> float:
        """The time of the next snapshot; the first is due at once."""
        if self.last is None:
            return float("-inf")
        soonest = [moment for moment, _ in self.later[:1]] + ([] if self.requested is None else [self.requested])
        at_once = [] if self.urgent is None else [self.urgent]
        return min([self.periodic, *at_once, *(max(moment, self.last + self._gap()) for moment in soonest)])

    def _gap(self) -> float:
        if not self.pace.share:
            return self.pace.gap
        return max(self.pace.gap, min(self.cost / self.pace.share, self.pace.longest_gap))

    def spent(self, seconds: float) -> None:
        """Takes the CPU time of a snapshot. Outliers are ignored."""
        usual = self.cost or DEAR
        self.cost = 0.8 * usual + 0.2 * min(seconds, 3 * usual)

    def take(self, now: float, chance: float) -> frozenset[str]:
        """Starts a snapshot and returns its reasons. `chance` in [0, 1) is the jitter of the next period."""
        due = {reason for moment, reason in self.later if moment <= now}
        if self.last is not None and now >= self.periodic:
            due.add(PERIOD)
        reasons = self.reasons | due
        self.last = now
        self.periodic = now + self.pace.period * (1 - self.pace.jitter * chance)
        self.requested = self.urgent = None
        self.reasons = frozenset()
        self.later = tuple((moment, reason) for moment, reason in self.later if moment > now)
        return reasons
