"""Where waiting pods are kept: in an order, or by who refused them.

Only `queue` uses these. `Ordered` is a heap that tolerates removals: what was removed stays in the heap until it comes
to the top, or until half of the heap is of that kind. `Parked` finds the few pods that an event may help without
looking at the others."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterator
from typing import Any, Final, TypeVar

from numalign.placement.decisions import Wake
from numalign.scheduler.choose.profiles import ZONES
from numalign.scheduler.queue.queued import QueuedPod

SMALL: Final = 64

K = TypeVar("K")
Key = tuple[Any, ...]
Entry = tuple[Key, str]


class PriorityPool:
    """Pods by uid, the first by `key` at hand. What the key is made of must not change while a pod is in here."""

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
"""Profile and plugin."""


class UnschedulablePods:
    """Pods that wait for something to happen, gated ones among them."""

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
        """Pods that zones keep away: from the node that a wake-up is about, or from any."""
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
