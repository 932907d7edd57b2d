"""What the scheduler tells people: events, and the PodScheduled condition of a pod that has to wait.

`cycle` and `binding` call `scheduled`, `refused` and the like, which never wait; `run` is a task that writes. In the
stock scheduler's words and form (kube-scheduler spec 4.9, 7.6). A condition is written only where it would change
something, and of several for one pod only the last. Events wait in line, however many there are; none is left out
because of a burst."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from numalign.api.meta import ObjectMeta
from numalign.api.pod import Pod, PodCondition
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.events import Occurrence, Reporter
from numalign.kube.objects import DeleteOptions, Document, ObjectReference, Preconditions
from numalign.kube.recorder import LONGEST_QUEUE, Recorder
from numalign.kube.resources import PODS

LOG: Final = logging.getLogger(__name__)
SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULER_ERROR: Final = "SchedulerError"
LINES: Final = 4
"""Recorders side by side; all events of one pod go through the same one."""
AT_ONCE: Final = LONGEST_QUEUE // 2


class Wait(Struct, frozen=True):
    """Why a pod waits."""

    reason: str
    message: str


class Publisher:
    def __init__(self, client: Client, reporter: Reporter, leads: Callable[[], bool] = lambda: True) -> None:
        """Who does not lead sees the same, and leaves it to the leader to tell."""
        self._client = client
        self._leads = leads
        self._lines = [_Line(Recorder(client, reporter)) for _ in range(LINES)]
        self._told: dict[str, Wait] = {}
        """By uid: what was written or is about to be."""
        self._due: dict[str, tuple[Pod, Wait]] = {}
        self._to_delete: deque[ObjectMeta] = deque()
        self._wake = asyncio.Event()

    def scheduled(self, pod: ObjectMeta, node: str) -> None:
        self.forget(pod.uid)
        note = f"Successfully assigned {pod.full_name} to {node}"
        self._record(Occurrence(regarding=_reference(pod), reason="Scheduled", action="Binding", note=note))

    def refused(self, pod: Pod, wait: Wait) -> None:
        """It stays without a node for now."""
        self.warned(pod.metadata, "FailedScheduling", "Scheduling", wait.message)
        if wait != (self._told.get(pod.metadata.uid) or _told_by(pod)):
            self._told[pod.metadata.uid] = wait
            self._due[pod.metadata.uid] = pod, wait
            self._wake.set()

    def warned(self, pod: ObjectMeta, reason: str, action: str, note: str) -> None:
        self._record(Occurrence(regarding=_reference(pod), reason=reason, action=action, note=note, type="Warning"))

    def cleared(self, pod: ObjectMeta) -> None:
        """A pod that its node turned away is deleted, if people want that."""
        if self._leads():
            self._to_delete.append(pod)
            self._wake.set()

    def forget(self, uid: str) -> None:
        """The pod has a node or is gone: nothing more is to be written into it."""
        self._told.pop(uid, None)
        self._due.pop(uid, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._patch_all())
            for line in self._lines:
                group.create_task(line.run())

    async def drained(self) -> None:
        for line in self._lines:
            await line.drained()

    def _record(self, what: Occurrence) -> None:
        if self._leads():
            self._lines[zlib.crc32(what.regarding.uid.encode()) % LINES].record(what)

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
            LOG.info("not deleted: %s", problem)

    async def _patch(self, pod: Pod, wait: Wait) -> None:
        meta, clock = pod.metadata, self._client.sender.clock
        try:
            await self._client.patch(
                PODS.at(meta.name, meta.namespace).sub("status"), "strategic", condition_patch(pod, wait, clock)
            )
        except errors.KubeError as problem:
            # The pod may be gone or another one by now; else its next attempt writes it.
            LOG.info("condition not written: %s", problem)
            self._told.pop(meta.uid, None)


class _Line:
    """Feeds a recorder no faster than it writes."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._waiting: deque[Occurrence] = deque()
        self._wake, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()

    def record(self, what: Occurrence) -> None:
        self._waiting.append(what)
        self._idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        await self._idle.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._recorder.run())
            group.create_task(self._feed())

    async def _feed(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                for _ in range(min(AT_ONCE, len(self._waiting))):
                    self._recorder.record(self._waiting.popleft())
                await self._recorder.drained()
            self._idle.set()


def condition_patch(pod: Pod, wait: Wait, clock: Clock) -> Document:
    """With the uid, so that a pod made again under the name is not hit."""
    before = _condition(pod)
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "reason": wait.reason,
        "message": wait.message,
        "observedGeneration": pod.metadata.generation,
    }
    if before is None or before.status != "False":
        condition["lastTransitionTime"] = clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}


def _condition(pod: Pod) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == SCHEDULED), None)


def _told_by(pod: Pod) -> Wait | None:
    found = _condition(pod)
    return Wait(found.reason, found.message) if found is not None and found.status == "False" else None


def _reference(pod: ObjectMeta) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
