"""Pods that are being tried or bound, and what happened meanwhile.

An event may be just what a pod needs whose attempt is about to fail, so events are kept as long as somebody is in
flight, and `queue` plays them back to a pod that returns (kube-scheduler spec 3.8). A pod whose flight takes very long
would keep all of them: the oldest are dropped then, and the pod is told that it missed some."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from itertools import islice
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.scheduler.intake.clusterevents import ObjectChange
from numalign.scheduler.queue.queued import QueuedPod

MOST_EVENTS: Final = 20_000


class InFlightPod(Struct, eq=False):
    queued: QueuedPod
    start: int
    """How many events there had ever been when it began."""
    latest: Pod
    """The pod as it was last seen; an attempt goes on with the one it began with."""
    over: bool = False
    """The pod is gone, or somebody bound it: there is nothing to come back for."""


class InFlightPods:
    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        # In the order of their start, and quick at giving the first one after many have landed: a dict is not.
        self._flights: OrderedDict[str, InFlightPod] = OrderedDict()
        self._events: deque[ObjectChange] = deque(maxlen=most_events)
        self._seen = 0

    def start(self, queued: QueuedPod) -> None:
        self._flights[queued.uid] = InFlightPod(queued, self._seen, queued.pod)

    def get(self, uid: str) -> InFlightPod | None:
        return self._flights.get(uid)

    def record(self, happening: ObjectChange) -> None:
        if self._flights:
            self._events.append(happening)
            self._seen += 1

    def missed(self, flight: InFlightPod) -> tuple[ObjectChange, ...] | None:
        """What happened since it began, the latest first; None: more than was kept."""
        count = self._seen - flight.start
        if count > len(self._events):
            return None
        latest_first = islice(reversed(self._events), count)
        return tuple(each for each in latest_first if each.uid in ("", flight.queued.uid))

    def land(self, uid: str) -> InFlightPod | None:
        flight = self._flights.pop(uid, None)
        # The first of them needs all that the others need.
        oldest = next(iter(self._flights.values()), None)
        needed = self._seen - oldest.start if oldest is not None else 0
        while len(self._events) > needed:
            self._events.popleft()
        return flight

    def uids(self) -> tuple[str, ...]:
        return tuple(self._flights)

    def all(self) -> tuple[InFlightPod, ...]:
        return tuple(self._flights.values())

    def kept(self) -> Counter[str]:
        """Events that are kept, by label."""
        return Counter(each.event.label for each in self._events)

    def __len__(self) -> int:
        return len(self._flights)
