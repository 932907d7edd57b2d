"""What the scheduler knows right now, as plain data: the queue, assumed pods, and how nodes stand.

`serving` shows it under /debug/state; with a pod's name, only that pod. Nothing is changed by looking."""

from __future__ import annotations

from typing import Any

from numalign.scheduler.main import Scheduler
from numalign.scheduler.queued import Queued


def state(scheduler: Scheduler, pod: str = "") -> dict[str, Any]:
    """`pod`: namespace/name; empty: all."""
    cluster, now = scheduler.cluster, scheduler.now()
    assumed = {
        each.pod.metadata.full_name: {"node": each.pod.spec.node_name, "bound": each.is_bound}
        for each in cluster.assumed.values()
    }
    queue = {
        name: [_waiting(each, now) for each in waiting if not pod or each.pod.metadata.full_name == pod]
        for name, waiting in scheduler.queue.pending().items()
    }
    told: dict[str, Any] = {"queue": queue, "assumed": {n: each for n, each in assumed.items() if pod in ("", n)}}
    if not pod:
        told["nodes"] = {name: len(cluster.pods_on(name)) for name in sorted(cluster.world.rows)}
        told["inFlight"] = len(scheduler.queue.flights)
        told["leads"] = scheduler.leads()
    return told


def _waiting(queued: Queued, now: float) -> dict[str, Any]:
    return {
        "pod": queued.pod.metadata.full_name,
        "uid": queued.uid,
        "waits": round(now - queued.added, 3),
        "attempts": queued.attempts,
        "refused": {plugin: list(reasons) for plugin, reasons in queued.rejection.reasons.items()},
        "gate": queued.gate,
    }
