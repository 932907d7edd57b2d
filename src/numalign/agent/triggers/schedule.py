"""Decides when to read the node again. Pure: time is an argument.

`triggers` reports requests and asks for the time of the next snapshot. Requests that come close together make one
snapshot, shortly after the first, and snapshots keep a minimum distance. No request is lost: one that comes during a
snapshot makes another. Without requests there is a snapshot every period, with jitter, so that the nodes of a cluster
do not all write at once."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

DEAR: Final = 0.004
"""Seconds of the processor that a look counts with before any was measured."""
START: Final = "start"
PERIOD: Final = "period"


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds."""

    period: float = 60.0
    jitter: float = 0.1
    """The part of a period that chance may take away, so that none is ever longer."""
    settle: float = 0.1
    """From a wish to its look: the kubelet changes several files for one pod."""
    gap: float = 1.0
    """From look to look, unless the period says so."""
    share: float = 0.0
    """The part of a core that looks may take while there always is a wish: they keep more distance then. 0: any."""
    longest_gap: float = 5.0


class Due(Struct):
    """The next look: when, and who wished for it. Times are of a clock that never jumps."""

    pace: Pace
    last: float | None = None
    """When the last look was."""
    periodic: float = 0.0
    wished: float | None = None
    later: tuple[tuple[float, str], ...] = ()
    """Moments to come, soonest first."""
    reasons: frozenset[str] = frozenset({START})
    cost: float = 0.0
    """Seconds of the processor that a look takes, as a sliding mean."""

    def wish(self, reason: str, now: float) -> None:
        self.reasons |= {reason}
        if self.wished is None:
            self.wished = now + self.pace.settle

    def wish_later(self, reason: str, moment: float) -> None:
        """A look at that moment, whatever happens before it."""
        self.later = tuple(sorted({*self.later, (moment, reason)}))

    def at(self) -> float:
        """The moment of the next look; the first is at once."""
        if self.last is None:
            return float("-inf")
        soonest = [moment for moment, _ in self.later[:1]] + ([] if self.wished is None else [self.wished])
        return min([self.periodic, *(max(moment, self.last + self._gap()) for moment in soonest)])

    def _gap(self) -> float:
        if not self.pace.share:
            return self.pace.gap
        return max(self.pace.gap, min(self.cost / self.pace.share, self.pace.longest_gap))

    def spent(self, seconds: float) -> None:
        """What the processor did for one look. One that is much dearer than usual is no measure."""
        usual = self.cost or DEAR
        self.cost = 0.8 * usual + 0.2 * min(seconds, 3 * usual)

    def take(self, now: float, chance: float) -> frozenset[str]:
        """Look now: why. `chance` from 0 up to 1 spreads the next period."""
        due = {reason for moment, reason in self.later if moment <= now}
        if self.last is not None and now >= self.periodic:
            due.add(PERIOD)
        reasons = self.reasons | due
        self.last = now
        self.periodic = now + self.pace.period * (1 - self.pace.jitter * chance)
        self.wished, self.reasons = None, frozenset()
        self.later = tuple((moment, reason) for moment, reason in self.later if moment > now)
        return reasons
