"""Holds a preemptor back for a moment where another scheduler may take the room of its victims.

`cycle` asks before every attempt. The nomination keeps the room of evicted pods free from pods of our profiles only:
other schedulers see the room, and not the nomination. If the preemptor is bound at the moment in which another
scheduler fills the room, the kubelet rejects one of the two pods, for good. A preemptor therefore waits until the other
scheduler has had its turn, and is decided with what the watch shows then. It does so for a few rounds of preemption:
where controllers replace the evicted pods at once, the race begins again with every round. Pure: `now` is an
argument."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.queue.nominations import Nominations

SETTLING: Final = 1.0
"""Seconds in which other schedulers react to the end of a pod."""
MOST_ROUNDS: Final = 3


class ContestedRoom(Struct):
    victims: tuple[str, ...]
    """The uids of the round's victims."""
    since: float
    rounds: int


class ContestedRooms:
    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._rooms: dict[str, ContestedRoom] = {}
        """By uid of the preemptor."""

    def held(self, uid: str, now: float) -> str:
        """The node for whose room the pod waits; empty: it does not wait."""
        victims, node = self._nominations.victims_of(uid), self._nominations.node_of(uid)
        if not victims or not self._cluster.waiting_elsewhere:
            return ""
        if any(victim in self._cluster.world.pods for victim in victims):
            return ""
        room = self._rooms.get(uid)
        if room is None or room.victims != victims:
            self._prune()
            room = self._rooms[uid] = ContestedRoom(victims, now, room.rounds + 1 if room is not None else 1)
        return node if room.rounds <= MOST_ROUNDS and now - room.since < SETTLING else ""

    def _prune(self) -> None:
        """Drops pods that wait no more for a node: they were deleted, or preemption gave them up."""
        for uid in [uid for uid in self._rooms if not self._nominations.node_of(uid)]:
            del self._rooms[uid]

    def forget(self, uid: str) -> None:
        """The pod has a node."""
        self._rooms.pop(uid, None)
