"""Rooms that Nodes hold for pods which are about to be created again.

`intake` calls it with Nodes and pods. A room counts like a pod that is nominated to the node, of a priority above all
but pods that are critical for the system: other pods leave it free. The first new pod of the same controller takes the
nomination over, so that it is tried there first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import heldrooms
from numalign.api.attributes.heldrooms import HeldRoom
from numalign.api.errors import BadObject
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.clock import Clock
from numalign.scheduler.queue.queue import SchedulingQueue

PRIORITY: Final = 1_000_000_000
"""The highest of pods that are not critical for the system."""


MARK: Final = "/held-room"
"""At the end of the uids of pods that stand for rooms; no other uid has a slash."""


class Held(Struct, eq=False):
    node: str
    room: HeldRoom
    taken_by: str = ""
    """The uid of the pod that came for it; empty: it is awaited."""


class HeldRooms:
    def __init__(self, queue: SchedulingQueue, clock: Clock) -> None:
        self._queue, self._clock = queue, clock
        self._held: dict[str, Held] = {}
        """By the uid of the pod that leaves."""
        self._said: dict[str, str] = {}
        """By node, its annotation."""

    def node(self, node: Node) -> None:
        """A Node was seen. BadObject if its annotation makes no sense: it holds nothing then."""
        name, written = node.metadata.name, node.metadata.annotations.get(heldrooms.NAME, "")
        if written == self._said.get(name, ""):
            return
        self._said[name] = written
        try:
            rooms = {each.uid: each for each in heldrooms.of_node(node)}
        except BadObject:
            self._keep_only((), name)
            raise
        self._keep_only(rooms, name)
        for uid, room in rooms.items():
            known = self._held.get(uid)
            if known is not None and known.node == name:
                known.room = room
            elif heldrooms.ends(room) > self._clock.wall():
                if known is not None:
                    self._drop(uid)
                self._hold(Held(name, room))

    def node_gone(self, name: str) -> None:
        self._said.pop(name, None)
        self._keep_only((), name)

    def awaited(self, pod: Pod) -> str:
        """The node whose room a new pod takes over; empty: no room is held for it."""
        found = next((each for each in self._held.values() if self._is_for(each, pod)), None)
        if found is None:
            return ""
        found.taken_by = pod.metadata.uid
        self._queue.nominations.remove(stand_in(found.room).metadata.uid)
        return found.node

    def waits_no_more(self, uid: str) -> None:
        """A pod without a node is gone: what it took over is held for the next one."""
        for each in self._held.values():
            if each.taken_by == uid:
                each.taken_by = ""
                self._hold(each)

    def tick(self) -> None:
        """Ends the rooms whose time is over."""
        if not self._held:
            return
        wall = self._clock.wall()
        for uid in [uid for uid, each in self._held.items() if heldrooms.ends(each.room) <= wall]:
            self._drop(uid)

    def _keep_only(self, uids: Collection[str], node: str) -> None:
        for uid in [uid for uid, each in self._held.items() if each.node == node and uid not in uids]:
            self._drop(uid)

    def _hold(self, held: Held) -> None:
        self._held[held.room.uid] = held
        self._queue.nominations.put(stand_in(held.room), held.node)

    def _drop(self, uid: str) -> None:
        """Pods that had to leave the room free are tried again."""
        held = self._held.pop(uid)
        if not held.taken_by:
            self._queue.delete(stand_in(held.room).metadata.uid, self._clock.now())

    def _is_for(self, held: Held, pod: Pod) -> bool:
        return not held.taken_by and heldrooms.is_successor(pod, held.room)


def stand_in(room: HeldRoom) -> Pod:
    """A pod for the nominations, which is never scheduled itself."""
    metadata = structs.replace(room.pod.metadata, uid=f"{room.uid}{MARK}")
    return structs.replace(room.pod, metadata=metadata, spec=structs.replace(room.pod.spec, priority=PRIORITY))


def is_stand_in(pod: Pod) -> bool:
    return pod.metadata.uid.endswith(MARK)
