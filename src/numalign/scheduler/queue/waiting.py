"""The places where a pod waits: ready, backing off, backing off from an error, parked.

`queue` decides where to; this puts the pod there, unless a gate holds it, counts it, and gives out the next one. A pod
is in one place at a time, and parked ones are found by who refused them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from numalign.scheduler.intake import clusterevents
from numalign.scheduler.queue import gates
from numalign.scheduler.queue.backoff import PodBackoff
from numalign.scheduler.queue.gates import Gate
from numalign.scheduler.queue.pools import PriorityPool, UnschedulablePods
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.queue.wakeups import QueueingStrategy

BACKOFF_ENDS: Final = (clusterevents.BACKOFF_COMPLETE, clusterevents.POPPED_EARLY)


class WaitingPods:
    def __init__(self, backoff: PodBackoff, gates: Sequence[Gate]) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        """Pods that came into a pool, by pool and event."""
        self.parked = UnschedulablePods()
        self._backoff, self._gates = backoff, gates
        self._ready = PriorityPool(attrgetter("order"))
        self._backing_off = PriorityPool(lambda queued: (backoff.expiry(queued), *queued.order))
        self._erring = PriorityPool(lambda queued: (backoff.expiry(queued), *queued.order))
        self._place: dict[str, PriorityPool | UnschedulablePods] = {}

    @property
    def ready(self) -> int:
        return len(self._ready)

    def __len__(self) -> int:
        return len(self._place)

    def get(self, uid: str) -> QueuedPod | None:
        place = self._place.get(uid)
        return place.get(uid) if place is not None else None

    def remove(self, uid: str) -> None:
        place = self._place.pop(uid, None)
        if place is not None:
            place.remove(uid)

    def pop(self, now: float) -> QueuedPod | None:
        """The first of those that are ready. If nobody is, nobody loses by ending a backoff early; errors do wait."""
        queued = self._ready.pop()
        while queued is None and (early := self._backing_off.first()) is not None:
            self.make_ready(early, clusterevents.POPPED_EARLY, now)
            queued = self._ready.pop()
        if queued is not None:
            del self._place[queued.uid]
        return queued

    def activate(self, uid: str, now: float) -> None:
        queued = self.get(uid)
        if queued is not None and self._ready.get(uid) is None:
            self.make_ready(queued, clusterevents.FORCED.label, now)

    def put(self, queued: QueuedPod, strategy: QueueingStrategy, label: str, now: float) -> bool:
        """To where the strategy and its backoff let the pod go; whether that is anywhere but parked."""
        if strategy is QueueingStrategy.SKIP:
            return self._park(queued, label)
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff.is_on(queued, now):
            return self._make_back_off(queued, label)
        return self.make_ready(queued, label, now)

    def make_ready(self, queued: QueuedPod, label: str, now: float) -> bool:
        if self._is_held(queued):
            return self._park(queued, label)
        queued.ready = now if queued.ready is None else queued.ready
        # What only ended a backoff is not what woke it.
        queued.cause = queued.cause if label in BACKOFF_ENDS and queued.cause else label
        self._move(queued, self._ready)
        self.incoming["active", label] += 1
        return True

    def end_backoffs(self, now: float) -> None:
        for pool in (self._backing_off, self._erring):
            while (queued := pool.first()) is not None and not self._backoff.is_on(queued, now):
                self.make_ready(queued, clusterevents.BACKOFF_COMPLETE, now)

    def due(self, now: float) -> float | None:
        """When somebody can be popped, if nobody comes or is woken; None: never."""
        if self._ready or self._backing_off:
            return now
        erring = self._erring.first()
        return max(now, math.floor(self._backoff.expiry(erring)) + 1.0) if erring is not None else None

    def by_pool(self) -> dict[str, list[QueuedPod]]:
        """All of them, under the names that metrics use; the ready ones in the order of their turn."""
        return {
            "active": sorted(self._ready, key=lambda queued: queued.order),
            "backoff": [*self._backing_off, *self._erring],
            "unschedulable": [queued for queued in self.parked if not queued.gate],
            "gated": [queued for queued in self.parked if queued.gate],
        }

    def _make_back_off(self, queued: QueuedPod, label: str) -> bool:
        if self._is_held(queued):
            return self._park(queued, label)
        queued.cause = label
        self._move(queued, self._erring if queued.rejection.is_error else self._backing_off)
        self.incoming["backoff", label] += 1
        return True

    def _park(self, queued: QueuedPod, label: str) -> bool:
        if self.parked.get(queued.uid) is None:
            self.incoming["gated" if queued.gate else "unschedulable", label] += 1
        if queued.gate:
            queued.by_flush = False  # it was not tried, so that the flush has not helped it
        self._move(queued, self.parked)
        return False

    def _is_held(self, queued: QueuedPod) -> bool:
        queued.gate = gates.holding(self._gates, queued.pod)
        return bool(queued.gate)

    def _move(self, queued: QueuedPod, place: PriorityPool | UnschedulablePods) -> None:
        uid = queued.uid
        self.remove(uid)
        self._place[uid] = place
        place.put(queued)
