"""Writes Events, and the PodScheduled condition of unschedulable pods.

`cycle`, `binder` and `preemptor` call `scheduled`, `refused` and the like, which never wait; `run` is the task that
writes. Reasons and messages are kube-scheduler's (kube-scheduler spec 4.9, 7.6). A condition is written only if it
changes, and of several pending ones for a pod only the last.

`EventQueue` writes Events through the calls that bindings leave free: as many at a time as `free_calls` allows.
While bindings use all of them, an Event waits for `LONGEST_WAIT`, then a few are written at a time beside the
bindings. Events of one pod are written in the order in which they happened, with the time at which they happened. A
burst never drops one."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct, structs

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodCondition
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.events.recorder import Recorder
from numalign.kube.resources import PODS, DeleteOptions, Document, ObjectReference, Preconditions
from numalign.process.log import about

LONGEST_WAIT: Final = 10.0
"""Seconds after which an Event no longer waits for bindings to leave a call free."""
BESIDE_BINDINGS: Final = 4
"""Events written at a time once the oldest has waited that long."""
PAUSE: Final = 0.05
"""Seconds between checks whether bindings have left a call free."""


class PendingEvent(Struct, frozen=True, gc=False):
    uid: str
    occurrence: Callable[[], Occurrence]
    now: float


class EventQueue:
    def __init__(self, client: Client, reporter: Reporter, free_calls: Callable[[], int]) -> None:
        self._clock = client.sender.clock
        self._recorder = Recorder(client, reporter)
        self._free_calls = free_calls
        self._waiting: deque[PendingEvent] = deque()
        self._writing: dict[str, list[PendingEvent]] = {}
        """By uid of a pod whose Event is being written: later Events of the same pod."""
        self._wake, self._written, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()

    def record(self, occurrence: Occurrence) -> None:
        self.record_later(occurrence.regarding.uid, lambda: occurrence)

    def record_later(self, uid: str, occurrence: Callable[[], Occurrence]) -> None:
        """Queues an Event about the object with this uid. `occurrence` is called when the Event is written."""
        self._waiting.append(PendingEvent(uid, occurrence, self._clock.now()))
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._dispatch(group))

    async def drained(self) -> None:
        """Waits until every Event recorded so far is written or dropped."""
        await self._idle.wait()

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._may_write()
                event = self._waiting.popleft()
                if event.uid in self._writing:
                    self._writing[event.uid].append(event)
                else:
                    self._writing[event.uid] = []
                    group.create_task(self._write(event))

    async def _may_write(self) -> None:
        """Waits until one more Event may be written."""
        while (allowed := self._allowed()) <= len(self._writing):
            if allowed:
                self._written.clear()
                await self._written.wait()
            else:
                await self._clock.sleep(PAUSE)

    def _allowed(self) -> int:
        """The number of Events that may be written at the same time."""
        waited = self._clock.now() - self._waiting[0].now
        return max(self._free_calls(), BESIDE_BINDINGS if waited >= LONGEST_WAIT else 0)

    async def _write(self, event: PendingEvent) -> None:
        later = self._writing[event.uid]
        while True:
            age = timedelta(seconds=self._clock.now() - event.now)
            await self._recorder.write(event.occurrence(), event.now, self._clock.wall() - age)
            if not later:
                break
            event = later.pop(0)
        del self._writing[event.uid]
        self._written.set()
        if not self._waiting and not self._writing:
            self._idle.set()


LOG: Final = logging.getLogger(__name__)
SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"


class PendingReason(Struct, frozen=True):
    """Why a pod is pending."""

    reason: str
    message: str
    nominated: str | None = None
    """The nominated node; empty: the nomination is cleared; None: it is not changed."""


NO_REASON: Final = PendingReason("", "")


class Publisher:
    def __init__(
        self,
        client: Client,
        reporter: Reporter,
        leads: Callable[[], bool] = lambda: True,
        free_calls: Callable[[], int] = lambda: 1,
    ) -> None:
        """Only the leader writes. `free_calls`: calls that bindings leave free, which Events may use."""
        self._client = client
        self._leads = leads
        self._events = EventQueue(client, reporter, free_calls)
        self._last_reasons: dict[str, PendingReason] = {}
        """By uid: what was written or is about to be."""
        self._due: dict[str, tuple[Pod, PendingReason]] = {}
        self._to_delete: deque[ObjectMeta] = deque()
        self._wake = asyncio.Event()

    def scheduled(self, pod: ObjectMeta, node: str, note: str = "") -> None:
        """`note`: what else the Event says."""
        self.forget(pod.uid)
        if self._leads():
            self._events.record_later(pod.uid, partial(_scheduled, pod, node, note))

    def refused(self, pod: Pod, wait: PendingReason) -> None:
        """Records that no node fits the pod for now."""
        self.warned(pod.metadata, "FailedScheduling", "Scheduling", wait.message)
        before = self._last_reasons.get(pod.metadata.uid) or _condition_of(pod)
        wanted = structs.replace(wait, nominated=_nomination(pod, before, wait))
        if wanted != before:
            self._write(pod, wanted)

    def nominated(self, pod: Pod, node: str) -> None:
        """Writes a nomination of a pod that another scheduler schedules, whose condition is that scheduler's."""
        # A nomination that is there already is written again, so that the scheduler sees a change of the pod.
        if pod.status.nominated_node_name == node:
            self._due[f"{pod.metadata.uid} again"] = pod, PendingReason("", "", "")
        self._due[pod.metadata.uid] = pod, PendingReason("", "", node)
        self._wake.set()

    def unnominated(self, pod: Pod) -> None:
        """Records that the pod's nomination was cleared."""
        before = self._last_reasons.get(pod.metadata.uid) or _condition_of(pod) or NO_REASON
        if before.nominated:
            self._write(pod, structs.replace(before, nominated=""))

    def preempted(self, victim: ObjectMeta, preemptor: ObjectMeta, node: str) -> None:
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        regarding, related = _reference(victim), _reference(preemptor)
        self._record(
            Occurrence(regarding=regarding, related=related, reason="Preempted", action="Preempting", note=note)
        )

    def warned(self, pod: ObjectMeta, reason: str, action: str, note: str) -> None:
        self._record(Occurrence(regarding=_reference(pod), reason=reason, action=action, note=note, type="Warning"))

    def cleared(self, pod: ObjectMeta) -> None:
        """Deletes a pod that its kubelet rejected (`deleteRejectedPods`)."""
        if self._leads():
            self._to_delete.append(pod)
            self._wake.set()

    def forget(self, uid: str) -> None:
        """Drops pending conditions of a pod that has a node or was deleted."""
        self._last_reasons.pop(uid, None)
        self._due.pop(uid, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._patch_all())
            group.create_task(self._events.run())

    async def drained(self) -> None:
        await self._events.drained()

    def _write(self, pod: Pod, wait: PendingReason) -> None:
        self._last_reasons[pod.metadata.uid] = wait
        self._due[pod.metadata.uid] = pod, wait
        self._wake.set()

    def _record(self, what: Occurrence) -> None:
        if self._leads():
            self._events.record(what)

    async def _patch_all(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                pod, wait = self._due.pop(next(iter(self._due)))
                await self._patch(pod, wait)
            while self._to_delete:
                await self._delete(self._to_delete.popleft())

    async def _delete(self, pod: ObjectMeta) -> None:
        options = DeleteOptions(preconditions=Preconditions(uid=pod.uid))
        try:
            await self._client.delete(PODS.at(pod.name, pod.namespace), options)
        except errors.KubeError as problem:
            LOG.info("Failed to delete rejected pod: %s", problem, extra=about(pod=pod.full_name, uid=pod.uid))

    async def _patch(self, pod: Pod, wait: PendingReason) -> None:
        meta, clock = pod.metadata, self._client.sender.clock
        try:
            await self._client.patch(
                PODS.at(meta.name, meta.namespace).sub("status"), "strategic", condition_patch(pod, wait, clock)
            )
        except errors.KubeError as problem:
            # The pod was deleted or recreated, or its next attempt writes the condition.
            LOG.info("Error updating pod condition: %s", problem, extra=about(pod=meta.full_name, uid=meta.uid))
            self._last_reasons.pop(meta.uid, None)


def condition_patch(pod: Pod, wait: PendingReason, clock: Clock) -> Document:
    """A patch of the pod's condition. It names the uid, so that a recreated pod of the same name is not patched."""
    status: Document = {"conditions": [_written(pod, wait, clock)]} if wait.reason else {}
    if wait.nominated is not None:
        status["nominatedNodeName"] = wait.nominated or None
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _written(pod: Pod, wait: PendingReason, clock: Clock) -> Document:
    before = _condition(pod)
    condition: Document = {
        "type": SCHEDULED,
        "status": "False",
        "reason": wait.reason,
        "message": wait.message,
        "observedGeneration": pod.metadata.generation,
    }
    if before is None or before.status != "False":
        condition["lastTransitionTime"] = clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    return condition


def _nomination(pod: Pod, before: PendingReason | None, wait: PendingReason) -> str | None:
    """The nominated node to write; None: the pod has none, and had none."""
    known = before.nominated if before is not None else pod.status.nominated_node_name or None
    wanted = known if wait.nominated is None else wait.nominated
    return wanted if wanted or known else None


def _condition(pod: Pod) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == SCHEDULED), None)


def _condition_of(pod: Pod) -> PendingReason | None:
    found = _condition(pod)
    nominated = pod.status.nominated_node_name or None
    if found is None or found.status != "False":
        return PendingReason("", "", nominated) if nominated else None
    return PendingReason(found.reason, found.message, nominated)


def _scheduled(pod: ObjectMeta, node: str, note: str) -> Occurrence:
    said = f"Successfully assigned {pod.full_name} to {node}" + (f"; {note}" if note else "")
    return Occurrence(regarding=_reference(pod), reason="Scheduled", action="Binding", note=said)


def _reference(pod: ObjectMeta) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
