"""What becomes of decisions: the books after a binding worked, failed, or was overtaken.

`binding` tells each outcome once. A pod that was bound stays assumed until the watch shows it; one that was not is
forgotten and goes back to the queue, and whoever waits for its room may try."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from numalign.kube.clock import Clock
from numalign.placement.decisions import Aligned
from numalign.scheduler import metrics
from numalign.scheduler.bind.binder import PendingBinding
from numalign.scheduler.bind.volumes import VolumeBinder
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.publish import SCHEDULER_ERROR, PendingReason, Publisher
from numalign.scheduler.intake import clusterevents
from numalign.scheduler.intake.clusterevents import ObjectChange
from numalign.scheduler.metrics import Metrics
from numalign.scheduler.queue.queue import SchedulingQueue

DONE, GONE, REFUSED = "done", "gone", "refused"
MOST_PLACEMENTS: Final = 1024
ALIGNMENTS: Final = {0: "none", 1: "one-zone"}


class BindResults:
    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        volumes: VolumeBinder,
        *,
        publisher: Publisher,
        counts: Metrics,
        clock: Clock,
        stories: PodHistories = SILENT,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._volumes = volumes
        self._publisher = publisher
        self._metrics = counts
        self._clock = clock
        self._stories = stories

    def is_open(self, bind: PendingBinding) -> bool:
        assumed = self._cluster.assumed.get(bind.decision.uid)
        return assumed is not None and assumed.decision is bind.decision

    def has_node(self, name: str) -> bool:
        return self._cluster.has_node(name)

    def bound(self, bind: PendingBinding) -> None:
        uid, now = bind.decision.uid, self._clock.now()
        wakes = self._cluster.bound(uid)
        if wakes:
            self._queue.wake(wakes, now)
        self._queue.done(uid, bound=True)
        self._publisher.scheduled(bind.pod.metadata, bind.node)
        ready = bind.queued.ready if bind.queued.ready is not None else bind.queued.added
        self._metrics.bound(bind.queued.attempts, now - ready)
        self._metrics.placed.add(_alignment(bind.decision.placement))
        self._count(bind, DONE, metrics.SCHEDULED)
        self._stories.tell(bind.pod.metadata, "bound", node=bind.node)

    def over(self, bind: PendingBinding) -> None:
        """What its room is worth to others, the watch tells when it shows where the pod is; ours is given up now."""
        uid = bind.decision.uid
        self._give_up(bind)
        self._queue.done(uid)
        self._publisher.forget(uid)
        self._stories.tell(bind.pod.metadata, "overtaken: gone, or bound by somebody else", node=bind.node)
        self._count(bind, GONE, metrics.ERROR)

    def failed(self, bind: PendingBinding, why: str) -> None:
        uid, now = bind.decision.uid, self._clock.now()
        self._stories.warn(bind.pod.metadata, "not bound", node=bind.node, why=why)
        self._give_up(bind)
        queued = self._queue.fail(uid, now)
        if queued is not None:
            self._publisher.refused(queued.pod, PendingReason(SCHEDULER_ERROR, f"binding rejected: {why}"))
        self._count(bind, REFUSED, metrics.ERROR)

    def _give_up(self, bind: PendingBinding) -> None:
        """Only what this very decision holds: the pod may have been decided anew, or be bound."""
        if bind.plan is not None:
            self._volumes.take_back(bind.plan)
        if not self.is_open(bind):
            return
        now = self._clock.now()
        wakes = self._cluster.forget(bind.decision.uid)
        self._queue.wake(wakes, now)
        self._queue.move(ObjectChange(clusterevents.ASSIGNED_POD_DELETED, old=bind.pod), now)

    def _count(self, bind: PendingBinding, outcome: str, result: str) -> None:
        seconds = self._clock.now() - bind.begun
        self._metrics.binding_seconds.observe(outcome, number=seconds)
        self._metrics.attempt_seconds.observe(result, bind.queued.profile, number=seconds)


@lru_cache(maxsize=MOST_PLACEMENTS)
def _alignment(placement: tuple[Aligned, ...]) -> str:
    """How far apart the widest container of the pod may be, as far as that is known."""
    widest = 0
    for each in placement:
        for zones in each.zones:
            widest = max(widest, len(zones))
    return ALIGNMENTS.get(widest, "several-zones")
