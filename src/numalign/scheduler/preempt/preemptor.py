"""What follows when no node takes a pod: perhaps others are evicted for it, and a node is kept for it.

`cycle` calls `attempt` once for such a pod. What `preemption` decides is entered here, so that the next pods respect
it: the nomination, the nominations that it voids, the evictions. What is to be written into the pod goes back to the
cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Randomness
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.preempt.preemption import Nomination, NotPreempted, Preemption, PreemptionRequest
from numalign.scheduler.queue.queue import SchedulingQueue


class EvictionStarter(Protocol):
    def start(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None: ...


class PreemptionOutcome(Struct, frozen=True):
    message: str = ""
    nominated: str | None = None
    """The node that the pod waits for; empty: for none any more; None: nothing new."""


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

    def attempt(self, asked: PreemptionRequest) -> PreemptionOutcome:
        found = self._preemption.decide(asked, self._rng)
        self._metrics.preemption_attempts.add()
        uid = asked.pod.metadata.uid
        if isinstance(found, NotPreempted):
            if found.is_final:
                self._queue.nominate(uid, "", asked.now)
            return PreemptionOutcome(f"preemption: {found.message}", "" if found.is_final else None)
        self._carry_out(asked.pod, found, asked.now)
        return PreemptionOutcome(f"preemption: {found.message}", found.node)

    def _carry_out(self, pod: Pod, found: Nomination, now: float) -> None:
        victims, uid = found.victims.pods, pod.metadata.uid
        self._metrics.preemption_victims.observe(number=len(victims))
        self._queue.nominate(uid, found.node, now)
        self._queue.nominations.expect(uid, (each.metadata.uid for each in victims))
        for other in self._queue.nominations.below(found.node, pod):
            # What was kept for it may be gone: it is better off looking elsewhere at once.
            self._queue.nominate(other.metadata.uid, "", now)
            self._publisher.unnominated(other)
            self._queue.activate((other.metadata.uid,), now)
        self._evictor.start(pod, found.node, victims)
