"""The scheduling cycle: takes one pod at a time from the queue, and binds it or returns it with a reason.

`main` runs it as a task; it is the only caller that places pods. An attempt does no I/O: `binder` carries out
decisions and `publish` writes Events and conditions beside it. An error while scheduling one pod fails that pod
only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.kube.clock import Clock
from numalign.placement.decisions import Decision, Randomness
from numalign.placement.explain import wording
from numalign.process.log import about
from numalign.scheduler import metrics
from numalign.scheduler.bind.binder import PendingBinding, VolumeBinder, volume_plan
from numalign.scheduler.choose import choose, filtering, messages, scoring
from numalign.scheduler.choose.choose import Attempt, AttemptContext, Chosen, NoNode
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.decisionlog import FORGETFUL, DecisionLog, LoggedAttempt, RecordedRandomness
from numalign.scheduler.choose.scoring import ScoreDetails
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.events import podhistory
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.podtraces import PodTraces
from numalign.scheduler.events.publish import SCHEDULER_ERROR, UNSCHEDULABLE, PendingReason, Publisher
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.contestedrooms import ContestedRooms
from numalign.scheduler.preempt.preemption import PreemptionRequest
from numalign.scheduler.preempt.preemptor import Preemptor
from numalign.scheduler.profiles import ZONES, Profile
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.scheduler.queue.queued import QueuedPod, Rejection

LOG: Final = logging.getLogger(__name__)
AT_ONCE: Final = 16
"""Attempts in a row before the event loop handles watch events and responses."""


class BindQueue(Protocol):
    def start(self, bind: PendingBinding) -> None: ...


class Cycle:
    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        *,
        binder: BindQueue,
        volumes: VolumeBinder,
        publisher: Publisher,
        rejections: StormGuard,
        counts: Metrics,
        clock: Clock,
        rng: Randomness,
        histories: PodHistories = SILENT,
        decision_log: DecisionLog = FORGETFUL,
        preemptor: Preemptor | None = None,
        traces: PodTraces | None = None,
    ) -> None:
        """`preemptor`: runs preemption for pods that no node fits; None: preemption is disabled. `traces`: learns when
        attempts begin and how long their phases take."""
        self._cluster, self._queue, self._profiles = cluster, queue, profiles
        self._binder, self._volumes, self._publisher = binder, volumes, publisher
        self._metrics, self._clock, self._chances = counts, clock, RecordedRandomness(rng)
        self._histories, self._decision_log, self._preemptor = histories, decision_log, preemptor
        self._traces = traces
        self._surroundings = AttemptContext(cluster, queue.nominations, rejections)
        self.start = 0
        """Where the next search for nodes begins, if it is not for all."""
        self._contested = ContestedRooms(cluster, queue.nominations)
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """A change may have made a pod ready. Ignored if no pod is pending."""
        if not self._queue.is_empty:
            self._wake.set()

    async def run(self) -> None:
        while True:
            for _ in range(AT_ONCE):
                queued = self._queue.pop(self._clock.now())
                if queued is None:
                    await self._something_due()
                    break
                self.step(queued)
            await asyncio.sleep(0)

    def step(self, queued: QueuedPod) -> None:
        """One attempt."""
        begun = self._clock.now()
        if self._traces is not None:
            self._traces.begins(queued.uid, begun)
        try:
            self._attempt(queued, begun)
        except Exception as problem:
            LOG.exception(
                "Error scheduling pod; retrying", extra=about(pod=queued.pod.metadata.full_name, uid=queued.uid)
            )
            self._fail(queued, f"{type(problem).__name__}: {problem}", begun)

    def _attempt(self, queued: QueuedPod, begun: float) -> None:
        pod, profile = queued.pod, self._profiles.get(queued.profile)
        if profile is None or self._is_over(pod):
            return self._queue.done(queued.uid)
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject as problem:
            refusal = Rejection(reasons={ZONES: (str(problem),)}, zones_of=frozenset())
            return self._refuse(queued, refusal, str(problem), begun)
        if profile.zones and (node := self._contested.held(queued.uid, begun)):
            return self._hold(queued, node, begun)
        is_traced = self._traces is not None and self._traces.follows(queued.uid)
        wants_details = self._decision_log.wants_details(begun) or is_traced
        ranking = ScoreDetails(self._clock.now) if wants_details else None
        attempt = self._surroundings.attempt(pod, shape, begun, self.start, ranking)
        found = choose.choose(attempt, profile, self._cluster, self._chances)
        self._metrics.chose(self._clock.now() - begun, ranking.phases if ranking is not None else {})
        if self._traces is not None and ranking is not None:
            self._traces.chose(queued.uid, ranking.phases)
        if isinstance(found, Chosen):
            self._remember_chosen(queued, found, attempt)
            self.start += found.looked_at
            return self._bind(queued, found.decision, attempt, profile)
        self._turn_down(queued, found, attempt, profile)

    def _is_over(self, pod: Pod) -> bool:
        """Whether the pod must not be scheduled: it is terminating, or already has a node."""
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.metadata.full_name}"
            self._publisher.warned(pod.metadata, "FailedScheduling", "Scheduling", note)
            return True
        return pod.metadata.uid in self._cluster.assumed

    def _bind(self, queued: QueuedPod, decision: Decision, attempt: Attempt, profile: Profile) -> None:
        plan = volume_plan(queued.pod, profile, self._cluster.world, decision.node)
        if plan is not None:
            self._volumes.assume(plan)
        placed = self._cluster.assume(queued.pod, decision)
        self._queue.nominations.remove(queued.uid)
        self._contested.forget(queued.uid)
        is_blind = profile.zones and self._cluster.engine.lacks_report(decision.node)
        note = wording.WITHOUT_REPORT if is_blind and scoring.is_aligned(attempt.shape) else ""
        if decision.direct is not None:
            note = wording.decided(decision.direct)
        self._binder.start(PendingBinding(queued, placed, decision, attempt.now, plan, profile.volume_seconds, note))

    def _turn_down(self, queued: QueuedPod, found: NoNode, attempt: Attempt, profile: Profile) -> None:
        refusal = messages.refusal(found, queued.pod, attempt.shape, self._cluster.engine, zones=profile.zones)
        if self._preemptor is None or profile.preemption is None or not found.nodes:
            return self._refuse(queued, refusal.rejection, refusal.message, attempt.now)
        asked = PreemptionRequest(
            pod=queued.pod,
            shape=attempt.shape,
            found=found,
            now=attempt.now,
            args=profile.preemption,
            profile=profile,
        )
        preempted = self._preemptor.attempt(asked)
        message = f"{refusal.message} {preempted.message}"
        self._refuse(queued, refusal.rejection, message, attempt.now, nominated=preempted.nominated)

    def _hold(self, queued: QueuedPod, node: str, begun: float) -> None:
        """Returns a preemptor to the queue for a backoff, until other schedulers have reacted to the freed room."""
        waiting = self._queue.fail(queued.uid, self._clock.now())
        message = wording.contested(node, len(self._cluster.waiting_elsewhere))
        if waiting is not None:
            self._publisher.refused(waiting.pod, PendingReason(UNSCHEDULABLE, message))
        self._remember_refused(queued, metrics.UNSCHEDULABLE, message, begun, is_held=True)
        self._count(queued, metrics.UNSCHEDULABLE, begun)

    def _refuse(
        self, queued: QueuedPod, rejection: Rejection, message: str, begun: float, *, nominated: str | None = None
    ) -> None:
        waiting = self._queue.park(queued.uid, rejection, self._clock.now())
        if waiting is not None:
            self._publisher.refused(waiting.pod, PendingReason(UNSCHEDULABLE, message, nominated))
        self._remember_refused(queued, metrics.UNSCHEDULABLE, message, begun)
        if nominated:
            self._histories.record(queued.pod.metadata, podhistory.NOMINATED, node=nominated)
        self._count(queued, metrics.UNSCHEDULABLE, begun)

    def _fail(self, queued: QueuedPod, message: str, begun: float) -> None:
        self._queue.wake(self._cluster.forget(queued.uid), self._clock.now())
        waiting = self._queue.fail(queued.uid, self._clock.now())
        if waiting is not None:
            self._publisher.refused(waiting.pod, PendingReason(SCHEDULER_ERROR, message))
        self._remember_refused(queued, metrics.ERROR, message, begun, is_held=True)
        self._count(queued, metrics.ERROR, begun)

    def _count(self, queued: QueuedPod, result: str, begun: float) -> None:
        self._metrics.attempt_seconds.observe(result, queued.profile, number=self._clock.now() - begun)

    def _remember_chosen(self, queued: QueuedPod, found: Chosen, attempt: Attempt) -> None:
        self._decision_log.note(
            LoggedAttempt(
                pod=queued.pod.metadata,
                attempt=queued.attempts,
                at=attempt.now,
                result=metrics.SCHEDULED,
                decision=found.decision,
                nodes=found.looked_at,
                fitting=found.fitting,
                chances=self._chances.drawn(),
                start=attempt.start,
                best=attempt.ranking.best(self._cluster.world, found.decision.node) if attempt.ranking else (),
            )
        )
        node = found.decision.node
        self._histories.record(
            queued.pod.metadata, podhistory.SELECTED, attempt=queued.attempts, after=queued.cause, node=node
        )

    def _remember_refused(
        self, queued: QueuedPod, result: str, message: str, begun: float, *, is_held: bool = False
    ) -> None:
        self._chances.drawn()
        self._decision_log.note(
            LoggedAttempt(
                pod=queued.pod.metadata,
                attempt=queued.attempts,
                at=begun,
                result=result,
                message=message,
                nodes=self._cluster.nodes,
                start=self.start,
                is_held=is_held,
            )
        )
        self._histories.record(queued.pod.metadata, result, attempt=queued.attempts, after=queued.cause, why=message)

    async def _something_due(self) -> None:
        """Waits until the queue has something due, or until `wake` reports a change."""
        now = self._clock.now()
        due = self._queue.due(now)
        if due is not None and due <= now:
            return
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(due - now, self._wake.set) if due is not None else None
        await self._wake.wait()
        if timer is not None:
            timer.cancel()
