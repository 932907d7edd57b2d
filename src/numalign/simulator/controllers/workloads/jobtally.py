"""A job's pods, counted: what runs, what is done, what failed lately. Pure; `jobs` decides by it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from numalign.simulator.controllers.framework import conditions, moments
from numalign.simulator.controllers.workloads import jobindexes, pods
from numalign.simulator.trees import Tree

TRACKING: Final = "batch.kubernetes.io/job-tracking"


@dataclass(frozen=True)
class Tally:
    active: list[Tree]
    succeeded: int
    """Pods, or indexes of an indexed job; those counted earlier included."""
    failed: int
    terminating: int
    failures_in_row: int
    """Failed pods that finished after the last success."""
    since_failure: float
    restarts_exceeded: bool = False
    indexes: frozenset[int] = frozenset()
    repeated: list[Tree] = field(default_factory=list)
    """Active pods whose index another one has, or that is done or none at all."""

    @property
    def unrepeated(self) -> list[Tree]:
        extra = {id(pod) for pod in self.repeated}
        return [pod for pod in self.active if id(pod) not in extra]


def is_tracked(pod: Tree) -> bool:
    """Not counted yet: the count takes the finalizer away."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def is_failed(pod: Tree) -> bool:
    """Or about to: one that is deleted while it runs is replaced at once."""
    return pods.phase(pod) == "Failed" or (pods.is_terminating(pod) and pods.phase(pod) != "Succeeded")


def tally(job: Tree, owned: Sequence[Tree], now: datetime) -> Tally:
    before = job.get("status") or {}
    active = [pod for pod in owned if pods.is_active(pod)]
    succeeded = [pod for pod in owned if pods.phase(pod) == "Succeeded"]
    failed = [pod for pod in owned if is_failed(pod)]
    row = _in_row(succeeded, failed)
    indexes = jobindexes.succeeded(job, succeeded)
    total = before.get("succeeded", 0) + sum(map(is_tracked, succeeded))
    return Tally(
        active=active,
        succeeded=len(indexes) if jobindexes.is_indexed(job) else total,
        failed=before.get("failed", 0) + sum(map(is_tracked, failed)),
        terminating=sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned),
        failures_in_row=len(row),
        since_failure=(now - row[-1]).total_seconds() if row else 0.0,
        restarts_exceeded=_restarts_exceeded(job, active),
        indexes=indexes,
        repeated=jobindexes.repeated(job, active, indexes),
    )


def _in_row(succeeded: Sequence[Tree], failed: Sequence[Tree]) -> list[datetime]:
    """When each pod failed that failed after the last success, in order."""
    last = max(filter(None, map(_finished, succeeded)), default=None)
    times = sorted(filter(None, map(_finished, failed)))
    return [time for time in times if last is None or time > last]


def _finished(pod: Tree) -> datetime | None:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    states = [(each.get("state") or {}).get("terminated") or {} for each in statuses]
    if states and all("finishedAt" in state for state in states):
        return moments.read(max(state["finishedAt"] for state in states))
    ready = conditions.find(conditions.listed(pod), "Ready") or {}
    return moments.read(ready.get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))


def _restarts_exceeded(job: Tree, active: Sequence[Tree]) -> bool:
    """Containers that restart in place count against the limit too."""
    spec = job["spec"]
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(map(pods.restarts, active))
    limit: int = spec.get("backoffLimit", 6)
    return restarts > 0 if limit == 0 else restarts >= limit
