"""Nominated pods: pods that wait for a node that preemption or their status named.

`queue` updates it with its pods. `choose` keeps the resources of nominated pods free on the node. A nomination made in
memory survives updates of the pod that do not carry it yet (kube-scheduler spec 3.7)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState

T = TypeVar("T", bound=Sequence[object])
REMEMBERED: Final = 8192
"""Changes that are remembered."""


class Nominations:
    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        self._victims: dict[str, tuple[str, ...]] = {}
        self._changed: deque[str] = deque(maxlen=REMEMBERED)
        self.changes = 0
        """How often a node's nominated pods became others."""

    def since(self, changes: int) -> set[str] | None:
        """Nodes whose nominated pods changed since; None: more changes than are remembered."""
        behind = self.changes - changes
        return None if behind > len(self._changed) else set(islice(reversed(self._changed), behind))

    def on(self, node: str) -> tuple[Pod, ...]:
        """Pods nominated to that node, in the order in which they were."""
        return tuple(self._pods.get(node, {}).values())

    def node_of(self, uid: str) -> str:
        """The nominated node of a pod; empty: none."""
        return self._node.get(uid, "")

    def nodes(self) -> tuple[str, ...]:
        """All nodes that have nominated pods."""
        return tuple(self._pods)

    def above(self, node: str, pod: Pod) -> tuple[Pod, ...]:
        """Other pods of the same or a higher priority nominated to the node; the pod must not use their resources."""
        return tuple(
            each
            for uid, each in self._pods.get(node, {}).items()
            if each.spec.priority >= pod.spec.priority and uid != pod.metadata.uid
        )

    def below(self, node: str, pod: Pod) -> tuple[Pod, ...]:
        """Pods of a lower priority nominated to the node; this pod may take their resources."""
        return tuple(each for each in self.on(node) if each.spec.priority < pod.spec.priority)

    def put(self, pod: Pod, node: str) -> None:
        """Sets the pod's nomination; an empty node clears it."""
        uid = pod.metadata.uid
        before = self._node.get(uid, "")
        victims = self._victims.get(uid, ()) if before == node else ()
        if before:
            self.remove(uid)
        if node:
            self._node[uid] = node
            self._pods.setdefault(node, {})[uid] = pod
            self.expect(uid, victims)
            self._note(node)

    def expect(self, uid: str, victims: Iterable[str]) -> None:
        """Records the uids of the victims that must end before the nominated pod fits."""
        if uid in self._node:
            self._victims[uid] = tuple(victims)

    def victims_of(self, uid: str) -> tuple[str, ...]:
        return self._victims.get(uid, ())

    def leaving(self, node: str) -> tuple[str, ...]:
        """The victims of all pods nominated to the node."""
        return tuple(victim for uid in self._pods.get(node, ()) for victim in self._victims.get(uid, ()))

    def update(self, old: Pod, new: Pod) -> None:
        names = old.status.nominated_node_name, new.status.nominated_node_name
        self.put(new, names[1] if any(names) else self.node_of(old.metadata.uid))

    def follow(self, pod: Pod) -> str:
        """A pod that another scheduler schedules was seen. Returns the node that it is not nominated to any more.

        A nomination for which pods are being evicted stays, also where that scheduler clears it."""
        uid, named = pod.metadata.uid, pod.status.nominated_node_name
        before = self._node.get(uid, "")
        if named == before or (not named and self._victims.get(uid)):
            if before:
                self._pods[before][uid] = pod
            return ""
        self.put(pod, named)
        return before

    def pod(self, uid: str) -> Pod | None:
        """The nominated pod."""
        return self._pods[self._node[uid]][uid] if uid in self._node else None

    def remove(self, uid: str) -> None:
        node = self._node.pop(uid, None)
        if node is None:
            return
        self._victims.pop(uid, None)
        del self._pods[node][uid]
        if not self._pods[node]:
            del self._pods[node]
        self._note(node)

    def __len__(self) -> int:
        return len(self._node)

    def _note(self, node: str) -> None:
        self._changed.append(node)
        self.changes += 1


class ByRow(Mapping[int, T]):
    """Data of nodes with nominated pods, by row, computed on access because there may be thousands."""

    def __init__(self, nominations: Nominations, world: ClusterState, read: Callable[[str], T]) -> None:
        self._nominations, self._world, self._read = nominations, world, read

    def __getitem__(self, row: int) -> T:
        found = self._read(self._world.names[row])
        if not found:
            raise KeyError(row)
        return found

    def __iter__(self) -> Iterator[int]:
        rows = self._world.rows
        return (rows[node] for node in self._nominations.nodes() if node in rows and self._read(node))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return any(True for _ in self)
