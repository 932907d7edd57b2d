"""The pools of pending pods: active, backoff, error backoff and unschedulable.

Only `queue` uses them. `WaitingPods` puts a pod into one pool unless a gate holds it, and pops the next one.
`PriorityPool` is a heap that tolerates removals. `UnschedulablePods` finds the pods that an event may help by the
plugins that rejected them. `PodBackoff` ends in whole seconds, so that pods whose backoff ends in the same second
are ordered by priority (kube-scheduler spec 3.3, 3.8)."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec import Struct

from numalign.kube.backoff import Exponential
from numalign.placement.decisions import Wake
from numalign.scheduler.profiles import ZONES
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue.queued import Gate, QueuedPod, holding
from numalign.scheduler.queue.wakeups import QueueingStrategy

SMALL: Final = 64

K = TypeVar("K")
Key = tuple[Any, ...]
Entry = tuple[Key, str]


class PriorityPool:
    """Pods by uid, ordered by `key`. The key of a pod must not change while the pod is in the pool."""

    def __init__(self, key: Callable[[QueuedPod], Key]) -> None:
        self._key = key
        self._pods: dict[str, tuple[QueuedPod, Entry]] = {}
        self._heap: list[Entry] = []

    def put(self, queued: QueuedPod) -> None:
        uid = queued.uid
        entry = self._key(queued), uid
        self._pods[uid] = queued, entry
        heapq.heappush(self._heap, entry)

    def get(self, uid: str) -> QueuedPod | None:
        found = self._pods.get(uid)
        return found[0] if found is not None else None

    def remove(self, uid: str) -> QueuedPod | None:
        found = self._pods.pop(uid, None)
        if len(self._heap) > SMALL and len(self._heap) > 2 * len(self._pods):
            self._heap = [entry for _, entry in self._pods.values()]
            heapq.heapify(self._heap)
        return found[0] if found is not None else None

    def first(self) -> QueuedPod | None:
        while self._heap:
            entry = self._heap[0]
            found = self._pods.get(entry[1])
            # A pod that left and came back has another entry, which is the one that counts.
            if found is not None and found[1] is entry:
                return found[0]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        queued = self.first()
        if queued is not None:
            _, uid = heapq.heappop(self._heap)
            del self._pods[uid]
        return queued

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)


Rejector = tuple[str, str]
"""Profile and plugin names."""


class UnschedulablePods:
    """Pods that wait for a cluster event, gated pods included."""

    def __init__(self) -> None:
        self.by_rejector: dict[Rejector, dict[str, QueuedPod]] = {}
        self._pods: dict[str, tuple[QueuedPod, tuple[Rejector, ...]]] = {}
        self._by_zones: dict[int, tuple[Container[str] | None, dict[str, QueuedPod]]] = {}
        """Pods that zones keep away, by the nodes in question as one object: pods of a kind share it."""

    def put(self, queued: QueuedPod) -> None:
        self.remove(queued.uid)
        rejectors = tuple((queued.profile, plugin) for plugin in queued.rejecting)
        self._pods[queued.uid] = queued, rejectors
        for rejector in rejectors:
            self.by_rejector.setdefault(rejector, {})[queued.uid] = queued
        if ZONES in queued.rejecting:
            nodes = queued.rejection.zones_of
            self._by_zones.setdefault(id(nodes), (nodes, {}))[1][queued.uid] = queued

    def get(self, uid: str) -> QueuedPod | None:
        entry = self._pods.get(uid)
        return entry[0] if entry is not None else None

    def remove(self, uid: str) -> QueuedPod | None:
        if uid not in self._pods:
            return None
        queued, rejectors = self._pods.pop(uid)
        for rejector in rejectors:
            _leave(self.by_rejector, rejector, self.by_rejector[rejector], uid)
        nodes = id(queued.rejection.zones_of)
        if uid in self._by_zones.get(nodes, (None, ()))[1]:
            _leave(self._by_zones, nodes, self._by_zones[nodes][1], uid)
        return queued

    def blocked(self, what: object) -> dict[str, QueuedPod]:
        """Pods that zones rejected: on the node of a wake-up, or on any node."""
        found: dict[str, QueuedPod] = {}
        for nodes, members in self._by_zones.values():
            if nodes is None or not isinstance(what, Wake) or what.node in nodes:
                found |= members
        return found

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _ in self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)


def _leave(groups: dict[K, Any], key: K, members: dict[str, QueuedPod], uid: str) -> None:
    del members[uid]
    if not members:
        del groups[key]


NEVER = float("-inf")


class PodBackoff(Struct, frozen=True):
    """Backoff in seconds. A maximum of 0 disables it."""

    initial: float = 1.0
    longest: float = 10.0

    def duration(self, attempts: int) -> float:
        """The backoff after that many failed attempts in a row."""
        return Exponential(self.initial, self.longest).pause(attempts)

    def expiry(self, queued: QueuedPod) -> float:
        """The second in which the backoff ends; in the past for a pod without backoff."""
        attempts = queued.errors or queued.refused
        if attempts == 0 or self.longest == 0:
            return NEVER
        if queued.expiry is None:
            queued.expiry = float(math.floor(queued.since + self.duration(attempts)))
        return queued.expiry

    def is_on(self, queued: QueuedPod, now: float) -> bool:
        """Whether the pod is still in backoff, including the whole second in which the backoff ends."""
        return self.expiry(queued) >= math.floor(now)


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
        """The first active pod. If there is none, the first pod in backoff; error backoff is always waited for."""
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
        """Puts the pod into the pool that strategy and backoff allow; False: that is the unschedulable pool."""
        if strategy is QueueingStrategy.SKIP:
            return self._park(queued, label)
        if strategy is QueueingStrategy.AFTER_BACKOFF and self._backoff.is_on(queued, now):
            return self._make_back_off(queued, label)
        return self.make_ready(queued, label, now)

    def make_ready(self, queued: QueuedPod, label: str, now: float) -> bool:
        if self._is_held(queued):
            return self._park(queued, label)
        queued.ready = now if queued.ready is None else queued.ready
        # The end of a backoff is not the event that woke the pod.
        queued.cause = queued.cause if label in BACKOFF_ENDS and queued.cause else label
        self._move(queued, self._ready)
        self.incoming["active", label] += 1
        return True

    def end_backoffs(self, now: float) -> None:
        for pool in (self._backing_off, self._erring):
            while (queued := pool.first()) is not None and not self._backoff.is_on(queued, now):
                self.make_ready(queued, clusterevents.BACKOFF_COMPLETE, now)

    def due(self, now: float) -> float | None:
        """When a pod can be popped without any further event; None: never."""
        if self._ready or self._backing_off:
            return now
        erring = self._erring.first()
        return max(now, math.floor(self._backoff.expiry(erring)) + 1.0) if erring is not None else None

    def by_pool(self) -> dict[str, list[QueuedPod]]:
        """All pods by pool, under the names that metrics use; active pods in scheduling order."""
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
            queued.by_flush = False  # the pod was not scheduled, so the flush had no effect
        self._move(queued, self.parked)
        return False

    def _is_held(self, queued: QueuedPod) -> bool:
        queued.gate = holding(self._gates, queued.pod)
        return bool(queued.gate)

    def _move(self, queued: QueuedPod, place: PriorityPool | UnschedulablePods) -> None:
        uid = queued.uid
        self.remove(uid)
        self._place[uid] = place
        place.put(queued)
