"""Makes a trace of each pod from its history: its waits, the attempts to schedule it, the binding, the kubelet.

The trace id is the uid of the pod, which log lines and histories have, too; so a new leader goes on with the trace of a
pod. `main` builds it if a collector of traces is given. `PodHistories` passes every entry on, and the scheduling cycle
says when an attempt begins and how long its phases took."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.kube.clock import Clock
from numalign.process import traces
from numalign.process.traces import Send, Span
from numalign.scheduler.events import podhistory

MOST_PODS: Final = 20_000
"""Pods whose trace is not complete; the trace of the oldest one remains without its first span."""
ROOT: Final = "pod"
ATTEMPT: Final = "attempt"
"""The field that entries have which end an attempt."""
STEPS: Final = {
    podhistory.BOUND: "binding",
    podhistory.DROPPED: "binding",
    podhistory.FAILED: "binding",
    podhistory.STARTED: "kubelet",
    podhistory.REJECTED: "kubelet",
}
"""Entries that end another step, with its name."""
ENDS: Final = frozenset({podhistory.STARTED, podhistory.REJECTED, podhistory.DELETED})
ERRORS: Final = frozenset({podhistory.DROPPED, podhistory.FAILED, podhistory.REJECTED})


class Tracing(Struct, frozen=True):
    """Takes the spans of a share of all pods."""

    send: Send
    ratio: float = 1.0


class _Progress(Struct):
    """What is known of a trace that is not complete. Times are those of the scheduler's clock."""

    queued: float
    since: float
    """The end of the latest step."""
    begun: float | None = None
    """The beginning of the attempt that is under way."""
    phases: Mapping[str, float] = {}


class PodTraces:
    def __init__(self, tracing: Tracing, clock: Clock) -> None:
        self._send, self._ratio, self._clock = tracing.send, tracing.ratio, clock
        self._open: OrderedDict[str, _Progress] = OrderedDict()

    def follows(self, uid: str) -> bool:
        """Whether the pod is among those whose traces are sent."""
        return uid in self._open

    def begins(self, uid: str, at: float) -> None:
        """An attempt to schedule the pod begins."""
        if (progress := self._open.get(uid)) is not None:
            progress.begun, progress.phases = at, {}

    def chose(self, uid: str, phases: Mapping[str, float]) -> None:
        """The attempt that is under way looked at nodes for so long, by phase, one after the other."""
        if (progress := self._open.get(uid)) is not None:
            progress.phases = phases

    def noted(self, pod: ObjectMeta, at: float, what: str, fields: Mapping[str, object]) -> None:
        """The history of the pod has a new entry."""
        progress = self._open.get(pod.uid)
        if what == podhistory.QUEUED and progress is None:
            self._opened(pod.uid, at)
        elif progress is not None:
            self._step(pod, progress, at, what, fields)

    def _opened(self, uid: str, at: float) -> None:
        if not traces.is_sampled(trace_id(uid), self._ratio):
            return
        if len(self._open) >= MOST_PODS:
            self._open.popitem(last=False)
        self._open[uid] = _Progress(at, at)

    def _step(self, pod: ObjectMeta, progress: _Progress, at: float, what: str, fields: Mapping[str, object]) -> None:
        if ATTEMPT in fields:
            self._attempted(pod, progress, at, what, fields)
        elif what in STEPS:
            self._span(pod, STEPS[what], progress.since, at, {"result": what, **fields}, error=_error(what))
            progress.since = at
        else:
            # A nomination or a confirmation ends no step.
            self._span(pod, what, at, at, fields)
        if what in ENDS:
            del self._open[pod.uid]
            self._span(pod, ROOT, progress.queued, at, {"result": what}, parent=None, error=_error(what))

    def _attempted(
        self, pod: ObjectMeta, progress: _Progress, at: float, what: str, fields: Mapping[str, object]
    ) -> None:
        begun = at if progress.begun is None else progress.begun
        self._span(pod, "queue", progress.since, begun, {})
        number = self._span(pod, ATTEMPT, begun, at, {"result": what, **fields})
        for phase, seconds in progress.phases.items():
            self._span(pod, phase, begun, begun + seconds, {}, parent=number)
            begun += seconds
        progress.begun, progress.since = None, at

    def _span(
        self,
        pod: ObjectMeta,
        name: str,
        start: float,
        end: float,
        fields: Mapping[str, object],
        *,
        parent: int | None = 0,
        error: str = "",
    ) -> int:
        """Sends a span. `parent`: 0 is the span of the pod, None makes it that span. Returns the number of the span."""
        root = span_id(pod.uid)
        number = root if parent is None else secrets.randbits(63) + 1
        wall = self._clock.wall().timestamp() - self._clock.now()
        attributes: dict[str, str | int | float | bool] = {
            "k8s.pod.name": pod.name,
            "k8s.namespace.name": pod.namespace,
            "k8s.pod.uid": pod.uid,
        }
        for field, value in fields.items():
            key = "k8s.node.name" if field == "node" else f"numalign.{field}"
            attributes[key] = value if isinstance(value, (str, int, float, bool)) else str(value)
        self._send(
            Span(
                trace=trace_id(pod.uid),
                number=number,
                parent=0 if parent is None else parent or root,
                name=name,
                start=wall + start,
                end=wall + end,
                attributes=attributes,
                error=error,
            )
        )
        return number


def _error(what: str) -> str:
    return what if what in ERRORS else ""


def trace_id(uid: str) -> int:
    """The uid as a number; the uids of static pods are hashes and no UUIDs."""
    try:
        return UUID(uid).int or 1
    except ValueError:
        return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=16).digest()) or 1


def span_id(uid: str) -> int:
    """Of the span that stands for the pod."""
    return int.from_bytes(hashlib.blake2b(uid.encode(), digest_size=8).digest()) or 1
