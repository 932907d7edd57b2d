"""Runs preemption for pods that no node fits, and evicts the victims.

`cycle` and the extender call `Preemptor.attempt`, which enters the nomination, clears the nominations that it
supersedes and starts the evictions. `Evictor.run` is a task with the workers. The preemptor stays out of the queue
until all calls are answered; then the end of its victims wakes it. Failed calls are repeated; if they keep failing, the
pod is scheduled again. Only the leader evicts, and each call names the victim's uid (kube-scheduler spec 1.20)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.backoff import Exponential
from numalign.kube.client import Client
from numalign.kube.resources import PODS, DeleteOptions, Document, Preconditions
from numalign.placement.decisions import Randomness
from numalign.process.log import about
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.preemption import (
    BY_SCHEDULER,
    DISRUPTED,
    Nomination,
    NotPreempted,
    Preemption,
    PreemptionRequest,
)
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.wakeups import PREEMPTION


class EvictionStarter(Protocol):
    def start(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None: ...


class PreemptionOutcome(Struct, frozen=True):
    message: str = ""
    nominated: str | None = None
    """The nominated node; empty: the nomination is cleared; None: it did not change."""


class Preemptor:
    def __init__(
        self,
        preemption: Preemption,
        queue: SchedulingQueue,
        *,
        evictor: EvictionStarter,
        publisher: Publisher,
        counts: Metrics,
        rng: Randomness,
    ) -> None:
        self._preemption, self._queue, self._evictor = preemption, queue, evictor
        self._publisher, self._metrics, self._rng = publisher, counts, rng

    def attempt(self, asked: PreemptionRequest, *, elsewhere: bool = False) -> PreemptionOutcome:
        """`elsewhere`: another scheduler schedules the pod."""
        found = self._preemption.decide(asked, self._rng)
        self._metrics.preemption_attempts.add()
        uid = asked.pod.metadata.uid
        if isinstance(found, NotPreempted):
            if found.is_final:
                self._queue.nominate(uid, "", asked.now, asked.pod if elsewhere else None)
            return PreemptionOutcome(f"preemption: {found.message}", "" if found.is_final else None)
        self._queue.nominate(uid, found.node, asked.now, asked.pod if elsewhere else None)
        self._carry_out(asked.pod, found, asked.now)
        return PreemptionOutcome(f"preemption: {found.message}", found.node)

    def _carry_out(self, pod: Pod, found: Nomination, now: float) -> None:
        victims, uid = found.victims.pods, pod.metadata.uid
        self._metrics.preemption_victims.observe(number=len(victims))
        self._queue.nominations.expect(uid, (each.metadata.uid for each in victims))
        for other in self._queue.nominations.below(found.node, pod):
            # The nominated node may not fit any more, so other nodes are tried immediately.
            self._queue.nominate(other.metadata.uid, "", now, other)
            self._publisher.unnominated(other)
            self._queue.activate((other.metadata.uid,), now)
        self._evictor.start(pod, found.node, victims)


LOG: Final = logging.getLogger(__name__)
BACKOFF: Final = Exponential(first=0.1, longest=10.0, factor=5.0)
TRIES: Final = 4
WORKERS: Final = 16


class PreemptionGate:
    """Holds a preemptor while the evictions for it are being sent."""

    name: Final = PREEMPTION

    def __init__(self) -> None:
        self.uids: set[str] = set()

    def holds(self, pod: Pod) -> bool:
        return pod.metadata.uid in self.uids


class Eviction(Struct, eq=False):
    """The evictions for one preemptor."""

    preemptor: Pod
    node: str
    victims: tuple[Pod, ...]
    open: int = 0
    """Calls without an answer so far."""
    failed: bool = False


Job = tuple[Eviction, Pod]


class Evictor:
    def __init__(
        self,
        client: Client,
        queue: SchedulingQueue,
        *,
        gate: PreemptionGate,
        publisher: Publisher,
        leads: Callable[[], bool],
        is_there: Callable[[str], bool],
        wake: Callable[[], None],
        histories: PodHistories = SILENT,
    ) -> None:
        """`is_there`: whether the pod with a uid is still charged to a node."""
        self._client, self._queue, self._gate = client, queue, gate
        self._publisher, self._leads, self._is_there, self._wake = publisher, leads, is_there, wake
        self._histories = histories
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()

    def start(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        # Victims that are terminating already need no further call.
        staying = tuple(each for each in victims if each.metadata.deletion_timestamp is None)
        if not staying:
            return
        eviction = Eviction(preemptor, node, staying, len(staying))
        self._gate.uids.add(preemptor.metadata.uid)
        for victim in staying:
            self._waiting.put_nowait((eviction, victim))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                group.create_task(self._work(), name=f"evicting-{number}")

    async def _work(self) -> None:
        while True:
            eviction, victim = await self._waiting.get()
            gone = not eviction.failed and await self._evicted(eviction, victim)
            eviction.failed = eviction.failed or not gone
            eviction.open -= 1
            if not eviction.open:
                self._finished(eviction)

    def _finished(self, eviction: Eviction) -> None:
        """Wakes the preemptor if its victims ended before it was parked, or if an eviction failed."""
        uid, clock = eviction.preemptor.metadata.uid, self._client.sender.clock
        self._gate.uids.discard(uid)
        if eviction.failed:
            self._queue.nominations.expect(uid, ())
        if eviction.failed or not all(self._is_there(each.metadata.uid) for each in eviction.victims):
            self._queue.activate((uid,), clock.now())
            self._wake()

    async def _evicted(self, eviction: Eviction, victim: Pod) -> bool:
        """Whether the victim is certainly deleted or terminating."""
        for tries in range(TRIES):
            if not self._leads():
                return False
            try:
                if await self._deleted(eviction.preemptor, victim):
                    self._publisher.preempted(victim.metadata, eviction.preemptor.metadata, eviction.node)
                    self._record(eviction, victim)
                return True
            except errors.KubeError as problem:
                about_victim = about(pod=victim.metadata.full_name, uid=victim.metadata.uid)
                LOG.warning("Failed to evict victim, retrying: %s", problem, extra=about_victim)
                await self._pause(tries)
        return False

    def _record(self, eviction: Eviction, victim: Pod) -> None:
        preemptor, node = eviction.preemptor.metadata, eviction.node
        self._histories.record(victim.metadata, "preempted", node=node, by=preemptor.full_name)
        self._histories.record(preemptor, "victim evicted", node=node, victim=victim.metadata.full_name)

    async def _deleted(self, preemptor: Pod, victim: Pod) -> bool:
        """Writes the victim's condition and deletes the victim. False: the pod does not exist any more."""
        meta = victim.metadata
        target = PODS.at(meta.name, meta.namespace)
        try:
            await self._client.patch(target.sub("status"), "strategic", self._disruption(preemptor, victim))
            await self._client.delete(target, DeleteOptions(preconditions=Preconditions(uid=meta.uid)))
        except errors.NotFound:
            return False
        except errors.Conflict as problem:
            # The API server answers with a conflict if another pod has the name by now.
            return await self._is_same(meta, problem)
        return True

    async def _is_same(self, meta: ObjectMeta, problem: errors.Conflict) -> bool:
        try:
            pod = await self._client.get(PODS.at(meta.name, meta.namespace))
        except errors.NotFound:
            return False
        if pod.metadata.uid == meta.uid:
            raise problem
        return False

    def _disruption(self, preemptor: Pod, victim: Pod) -> Document:
        condition = {
            "type": DISRUPTED,
            "status": "True",
            "reason": BY_SCHEDULER,
            "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
            "observedGeneration": victim.metadata.generation,
            "lastTransitionTime": self._client.sender.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return {"metadata": {"uid": victim.metadata.uid}, "status": {"conditions": [condition]}}

    async def _pause(self, tries: int) -> None:
        clock = self._client.sender.clock
        await clock.sleep(BACKOFF.pause(tries + 1) * (1.0 + clock.chance() / 10))
