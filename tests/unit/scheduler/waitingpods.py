"""Pods that wait, in few words, and a queue to put them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.scheduler.queue import wakeups
from numalign.scheduler.queue.queue import DEFAULTS, QueueSettings, SchedulingQueue
from numalign.scheduler.queue.queued import Gate, QueuedPod, Rejection
from numalign.scheduler.queue.wakeups import Wakeups

PROFILE = "numalign"


def pod(name: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **meta}
    return decode.decode(
        Pod, {"metadata": metadata, "spec": {"schedulerName": PROFILE, **(spec or {})}, "status": status or {}}
    )


def node(name: str, spec: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **offered: Any) -> Node:
    allocatable = {"cpu": 8, "memory": "16Gi", "pods": 110, **offered}
    metadata = {"name": name, "labels": labels or {}}
    return decode.decode(Node, {"metadata": metadata, "spec": spec or {}, "status": {"allocatable": allocatable}})


def asking(**amounts: Any) -> dict[str, Any]:
    """A spec with one container that asks for that."""
    return {"containers": [{"name": "c", "resources": {"requests": amounts}}]}


def queue(
    gates: Sequence[Gate] = (), settings: QueueSettings = DEFAULTS, zones: wakeups.ZoneHints | None = None
) -> SchedulingQueue:
    return SchedulingQueue({PROFILE: Wakeups(wakeups.stock(zones=zones))}, gates, settings)


def refused(*plugins: str, **more: Any) -> Rejection:
    return Rejection(reasons={plugin: (f"{plugin} says no",) for plugin in plugins}, **more)


def tried(queue: SchedulingQueue, rejection: Rejection, now: float) -> QueuedPod:
    """The next pod, after an attempt that came to nothing."""
    popped = queue.pop(now)
    assert popped is not None
    parked = queue.park(popped.uid, rejection, now)
    assert parked is popped
    return parked


def names(queue: SchedulingQueue) -> dict[str, list[str]]:
    """By pool; pools that are empty are left out."""
    return {pool: [each.pod.metadata.name for each in pods] for pool, pods in queue.pending().items() if pods}


def popped(queue: SchedulingQueue, now: float) -> list[str]:
    """All that can be had now, in order."""
    found = []
    while (next_one := queue.pop(now)) is not None:
        found.append(next_one.pod.metadata.name)
    return found
