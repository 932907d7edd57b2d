"""Finds out whether any scheduler has looked at a pending pod, and which schedulers the cluster seems to have.

`numalign explain` calls `unattended` before it says where a pod would go: a pod whose scheduler name is misspelt, or
whose scheduler does not run, stays pending although every node would take it. A scheduler leaves a PodScheduled
condition or an Event on each pod that it refuses. A Lease with the name of the scheduler and other pods that were bound
under a name show which schedulers there are. Pure: the caller lists leases and Events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.kube.resources import Event, Lease
from numalign.placement.explain import wording

SCHEDULED: Final = "PodScheduled"
NODE_LEASES: Final = "kube-node-lease"


class HeldLease(Struct, frozen=True):
    """A Lease of the pod's scheduler name. `age`: seconds since it was renewed, None where that is not known."""

    name: str
    holder: str
    age: float | None
    is_current: bool


class Unattended(Struct, frozen=True, kw_only=True):
    """A pending pod that no scheduler has looked at."""

    scheduler: str
    seconds: float | None
    """Since the pod was created; None: not known."""
    are_events_known: bool = False
    lease: HeldLease | None = None
    bound: tuple[str, ...] = ()
    """Scheduler names under which pods of the cluster have a node, the most frequent first."""

    @property
    def is_served(self) -> bool:
        """Whether there is a sign that a scheduler of this name runs."""
        return self.lease.is_current if self.lease is not None else self.scheduler in self.bound

    @property
    def sentence(self) -> str:
        traces = ("PodScheduled condition", *(["event"] if self.are_events_known else []))
        return wording.unattended(self.scheduler, traces, self.seconds, self.bound, self._lease)

    @property
    def _lease(self) -> str:
        lease = self.lease
        if lease is None:
            return ""
        return wording.lease(lease.name, lease.holder, lease.age, is_current=lease.is_current)


class SchedulerSigns(Struct, frozen=True, kw_only=True):
    """What an API server has about schedulers beside pods."""

    leases: Sequence[Lease] = ()
    events: Sequence[Event] | None = None
    """Those about the pod; None: not known."""


def unattended(pod: Pod, pods: Iterable[Pod], signs: SchedulerSigns, wall: str) -> Unattended | None:
    """None: a scheduler has looked at the pod, or none has to. `wall`: the time now, as a timestamp."""
    if pod.spec.node_name or pod.spec.scheduling_gates or pod.status.is_finished or _was_looked_at(pod, signs):
        return None
    name = pod.spec.scheduler_name
    counts: dict[str, int] = {}
    for other in pods:
        # The controller of a DaemonSet names the node itself, but its pods pass through a scheduler, too.
        if other.spec.node_name:
            counts[other.spec.scheduler_name] = counts.get(other.spec.scheduler_name, 0) + 1
    lease = next((each for each in signs.leases if each.metadata.name == name), None)
    return Unattended(
        scheduler=name,
        are_events_known=signs.events is not None,
        seconds=_seconds(pod.metadata.creation_timestamp, wall),
        lease=_held(lease, wall) if lease is not None else None,
        bound=tuple(sorted(counts, key=lambda each: (-counts[each], each))),
    )


def _was_looked_at(pod: Pod, signs: SchedulerSigns) -> bool:
    conditions = any(each.type == SCHEDULED for each in pod.status.conditions)
    return conditions or bool(pod.status.nominated_node_name) or bool(signs.events)


def _held(lease: Lease, wall: str) -> HeldLease:
    spec, age = lease.spec, _seconds(lease.spec.renew_time, wall)
    is_current = bool(spec.holder_identity) and age is not None and age <= (spec.lease_duration_seconds or 0)
    return HeldLease(lease.metadata.full_name, spec.holder_identity or "", age, is_current)


def _seconds(then: str | None, now: str) -> float | None:
    try:
        return max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()) if then else None
    except (ValueError, TypeError):
        return None
