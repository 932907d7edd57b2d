"""Logs what an operator needs at the default verbosity: what was seen at the start, and a summary now and then.

`main` calls `tick` every second. A summary is logged once a minute while something happens, and once an hour otherwise,
so that a quiet scheduler does not look like a dead one."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from numalign.process.log import about
from numalign.scheduler import metrics
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.queue.queue import SchedulingQueue

LOG: Final = logging.getLogger(__name__)
INTERVAL: Final = 60.0
QUIET_INTERVAL: Final = 3600.0


class Totals(Struct, frozen=True):
    """Numbers since the start of the process."""

    bound: int = 0
    unschedulable: int = 0
    """Attempts that found no node."""
    failed: int = 0
    """Attempts that ended with an error."""
    rejected: int = 0
    """Pods of our profiles that their kubelet rejected."""
    preemptions: int = 0


class PeriodicSummary:
    def __init__(self, names: Iterable[str], cluster: Cluster, queue: SchedulingQueue, counts: Metrics) -> None:
        """`names`: the scheduler names that are served."""
        self._names = ",".join(names)
        self._cluster, self._queue, self._counts = cluster, queue, counts
        self._last = Totals()
        self._last_at: float | None = None

    def tick(self, now: float, *, is_synced: bool, leads: bool) -> None:
        """`is_synced`: the caches have every object of the cluster."""
        if self._last_at is None:
            if is_synced:
                self._last_at = now
                LOG.info("Synced caches", extra=about(schedulers=self._names, **self._standing()))
            return
        if now - self._last_at < INTERVAL:
            return
        totals = _totals(self._counts)
        if totals == self._last and now - self._last_at < QUIET_INTERVAL:
            return
        since = {name: number - getattr(self._last, name) for name, number in structs.asdict(totals).items()}
        fields = {"schedulers": self._names, "leads": leads, "seconds": round(now - self._last_at), **since}
        self._last, self._last_at = totals, now
        LOG.info("Summary", extra=about(**fields, **self._standing()))

    def _standing(self) -> dict[str, object]:
        """What there is now: nodes by the state of their report, and pods."""
        reports = metrics.reports(self._cluster)
        standing: dict[str, object] = {"nodes": self._cluster.nodes, "reports": reports["present"]}
        standing |= {f"reports_{state}": count for state, count in reports.items() if state != "present" and count}
        pending = sum(len(pods) for pods in self._queue.pending().values())
        return standing | {"pods": self._cluster.pods, "pending": pending}


def _totals(counts: Metrics) -> Totals:
    attempts = {metrics.SCHEDULED: 0.0, metrics.UNSCHEDULABLE: 0.0, metrics.ERROR: 0.0}
    for (result, _), number in counts.attempt_seconds.counts():
        attempts[result] = attempts.get(result, 0.0) + number
    rejected = sum(number for (_, placed_by), number in counts.rejections.values.items() if placed_by == metrics.OURS)
    return Totals(
        bound=int(attempts[metrics.SCHEDULED]),
        unschedulable=int(attempts[metrics.UNSCHEDULABLE]),
        failed=int(attempts[metrics.ERROR]),
        rejected=int(rejected),
        preemptions=int(sum(counts.preemption_attempts.values.values())),
    )
