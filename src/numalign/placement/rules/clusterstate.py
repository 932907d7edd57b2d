"""The state that plugins read: all nodes, and all pods that have a node, as arrays and classes over rows.

`scheduler.choose.cluster` calls `put_node`, `put_pod` and their opposites; plugins only read. Rows are those of the
engine's columns. Pods on a row without a node stay, and count again when the node appears (kube-scheduler spec 2.5);
they must be dropped before the row is given to another node. Parts that only some plugins need subscribe with
`follow`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import StampedCache
from numalign.api.objects.node import Node, Taint
from numalign.api.objects.pod import Pod
from numalign.placement.rules import nodestate
from numalign.placement.rules.awaited import AwaitedNodes
from numalign.placement.rules.nodestate import HostPort, Images, PortsInUse
from numalign.placement.rules.rowclasses import NO_LABELS, NodeLabels, RowClasses, grown
from numalign.placement.rules.totals import Charge, Totals

FIRST_ROWS: Final = 64
MOST_MASKS: Final = 1024

Flags = NDArray[np.bool_]
TaintKey = tuple[str, str, str]
"""Key, value and effect; when a taint was added does not matter."""


class AssignedPod(Struct, frozen=True, kw_only=True, gc=False):
    """A pod on a row, bound or about to be, with what the rules need of it.

    It has no reference cycles and is not tracked by the garbage collector, like the records of the ledger and the
    informers."""

    uid: str
    row: int
    pod: Pod
    charge: Charge
    ports: tuple[HostPort, ...]


class StateFollower(Protocol):
    """Derived state that is notified after each change."""

    def node_changed(self, row: int) -> None:
        """The node was put, replaced or dropped."""

    def pod_added(self, assigned: AssignedPod) -> None: ...

    def pod_removed(self, assigned: AssignedPod) -> None: ...


class ClusterState:
    def __init__(self) -> None:
        self.capacity = FIRST_ROWS
        """Length of all arrays over rows."""
        self.present: Flags = np.zeros(FIRST_ROWS, np.bool_)
        """Rows that have a node."""
        self.cordoned: NDArray[np.int32] = np.zeros(FIRST_ROWS, np.int32)
        """1 where the node is."""
        self.names: list[str] = [""] * FIRST_ROWS
        self.rows: dict[str, int] = {}
        """Of nodes that are there, by name."""
        self.labels = NodeLabels(FIRST_ROWS)
        self.taints: RowClasses[tuple[TaintKey, ...]] = RowClasses(FIRST_ROWS)
        self.features: RowClasses[frozenset[str]] = RowClasses(FIRST_ROWS)
        self.totals = Totals(FIRST_ROWS)
        self.ports = PortsInUse()
        self.images = Images()
        self.unreported = AwaitedNodes()
        """Nodes without a report."""
        self.kubelets_away = AwaitedNodes()
        """Nodes whose report says that the kubelet does not answer."""
        self.pods: dict[str, AssignedPod] = {}
        """By uid."""
        self.on_row: list[dict[str, AssignedPod]] = [{} for _ in range(FIRST_ROWS)]
        self._followers: list[StateFollower] = []
        self._renamed = 0
        self._cordoned = 0
        self._masks: StampedCache[Hashable, Flags] = StampedCache(MOST_MASKS)
        self._node_rows: StampedCache[None, NDArray[np.intp]] = StampedCache(1)

    def put_node(self, row: int, node: Node) -> None:
        self._make_room(row)
        self._name(row, node.metadata.name)
        self._describe(row, node)

    def drop_node(self, row: int) -> None:
        self.unreported.drop(row)
        self.kubelets_away.drop(row)
        self._name(row, "")
        self._describe(row, None)

    def put_pod(self, uid: str, row: int, pod: Pod) -> None:
        """Puts the pod on the row; replaces its former state."""
        self._make_room(row)
        if uid in self.pods:
            self.drop_pod(uid)
        charge, ports = self.totals.charge_of(pod), nodestate.wanted(pod)
        assigned = AssignedPod(uid=uid, row=row, pod=pod, charge=charge, ports=ports)
        self.pods[uid] = self.on_row[row][uid] = assigned
        self.totals.add(row, charge)
        if ports:
            self.ports.add(row, ports)
        for follower in self._followers:
            follower.pod_added(assigned)

    def drop_pod(self, uid: str) -> None:
        assigned = self.pods.pop(uid, None)
        if assigned is None:
            return
        del self.on_row[assigned.row][uid]
        self.totals.subtract(assigned.row, assigned.charge)
        self.ports.remove(assigned.row, assigned.ports)
        for follower in self._followers:
            follower.pod_removed(assigned)

    def follow(self, follower: StateFollower) -> None:
        """Notifies the follower of all present nodes and pods, and of every change from now on."""
        self._followers.append(follower)
        for row in self.rows.values():
            follower.node_changed(row)
        for assigned in self.pods.values():
            follower.pod_added(assigned)

    @property
    def generation(self) -> int:
        """Raised whenever a node is added, deleted, or changes its labels."""
        return self._renamed + self.labels.generation

    @property
    def node_rows(self) -> NDArray[np.intp]:
        """Rows that have a node, ascending; not to be written to."""
        return self._node_rows.get(None, self._renamed, lambda: np.flatnonzero(self.present))

    @property
    def description(self) -> int:
        """Raised whenever a node is added, deleted, or changed in anything but amounts."""
        parts = self.taints.generation + self.features.generation + self.images.generation
        awaited = self.unreported.generation + self.kubelets_away.generation
        return self._renamed + self._cordoned + self.labels.generation + awaited + parts

    def mask(self, key: Hashable, make: Callable[[], Flags]) -> Flags:
        """An answer about names and labels by row, made again when a node has other ones. The key stands for the
        question; the array is not to be written to."""
        flags = self._masks.get(key, self.generation, make)
        flags.flags.writeable = False
        return flags

    def _name(self, row: int, name: str) -> None:
        before = self.names[row]
        if before != name:
            self._renamed += 1
            if self.rows.get(before) == row:
                del self.rows[before]
            self.names[row] = name
        if name:
            self.rows[name] = row

    def _describe(self, row: int, node: Node | None) -> None:
        self.present[row] = node is not None
        cordoned = node is not None and node.spec.unschedulable
        self._cordoned += bool(self.cordoned[row] != cordoned)
        self.cordoned[row] = cordoned
        self.labels.put(row, node.metadata.labels if node else NO_LABELS)
        self.taints.put(row, (tuple(map(_taint_key, node.spec.taints)) or None) if node else None)
        self.features.put(row, (frozenset(node.status.declared_features) or None) if node else None)
        self.images.put(row, node.status.images if node else ())
        self.totals.offer(row, node)
        for follower in self._followers:
            follower.node_changed(row)

    def _make_room(self, row: int) -> None:
        if row < self.capacity:
            return
        before, self.capacity = self.capacity, max(2 * self.capacity, row + 1)
        self.present, self.cordoned = grown(self.present, self.capacity), grown(self.cordoned, self.capacity)
        self.names += [""] * (self.capacity - before)
        self.on_row += [{} for _ in range(self.capacity - before)]
        self._renamed += 1
        for part in (self.labels, self.taints, self.features, self.totals):
            part.grow(self.capacity)


def _taint_key(taint: Taint) -> TaintKey:
    return (taint.key, taint.value, taint.effect)
