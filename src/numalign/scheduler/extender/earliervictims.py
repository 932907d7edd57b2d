"""Remembers which victims were named for a pod, so that no others are evicted while these leave.

kube-scheduler tries the pod again as soon as one of its victims is gone, and looks for victims anew where the totals of
the node are still short. The room of the victim may not be certain by then: its containers may still run. Or the watch
has not shown its end here, and kube-scheduler rejects an answer that names a pod which is gone. So `extender` asks here
first, and names no victims for a second, and no others until the earlier ones are gone for certain, or for a minute.
Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from numalign.api.caches import BoundedCache
from numalign.scheduler.choose.cluster import Cluster

PAUSE: Final = 1.0
"""Seconds after an answer in which none is given: kube-scheduler waits as long before it repeats a failed attempt."""
PATIENCE: Final = 60.0
"""Seconds after an answer in which its victims are expected to leave."""
MOST: Final = 4_096
"""Pods whose victims are remembered."""


class Answered(Struct, frozen=True):
    at: float
    victims: tuple[tuple[str, ...], ...]
    """Uids by node that was answered; kube-scheduler evicts those of one node."""


class EarlierVictims:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._answered: BoundedCache[str, Answered] = BoundedCache(MOST)
        """By uid of the pod that they are to leave for."""

    def put(self, uid: str, victims: Sequence[tuple[str, ...]], now: float) -> None:
        if victims:
            self._answered.keep(uid, Answered(now, tuple(victims)))

    def are_leaving(self, uid: str, now: float) -> bool:
        """Whether victims of the pod are being evicted, and their room is not certain yet."""
        answered = self._answered.get(uid)
        if answered is None or now >= answered.at + PATIENCE:
            return False
        leaving = (self._has_left(each) and self._is_held(each) for each in answered.victims)
        return now < answered.at + PAUSE or any(leaving)

    def _has_left(self, victims: Sequence[str]) -> bool:
        """Whether one of them is gone, or about to be."""
        pods = self._cluster.world.pods
        return any(each not in pods or pods[each].pod.metadata.deletion_timestamp is not None for each in victims)

    def _is_held(self, victims: Sequence[str]) -> bool:
        """Whether the room of one of them may still be in use."""
        return any(each in self._cluster.world.pods or self._cluster.engine.charges(each) for each in victims)
