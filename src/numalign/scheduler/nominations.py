"""Pods that wait for a node that was picked for them, by preemption or by somebody who wrote it into their status.

`queue` keeps this in step with the pods it has; the cycle reads it to leave such pods their room, and nominates through
the queue, which knows whether the pod still waits. A nomination made in memory outlives updates of the pod that do not
speak of one yet (kube-scheduler spec 3.7)."""

from __future__ import annotations

from numalign.api.pod import Pod


class Nominations:
    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}

    def on(self, node: str) -> tuple[Pod, ...]:
        """Pods nominated to that node, in the order in which they were."""
        return tuple(self._pods.get(node, {}).values())

    def node_of(self, uid: str) -> str:
        """Empty: none."""
        return self._node.get(uid, "")

    def nodes(self) -> tuple[str, ...]:
        """All nodes that have nominated pods."""
        return tuple(self._pods)

    def put(self, pod: Pod, node: str) -> None:
        """The pod's nomination from now on; an empty node takes it away."""
        self.remove(pod.metadata.uid)
        if node:
            self._node[pod.metadata.uid] = node
            self._pods.setdefault(node, {})[pod.metadata.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        told = old.status.nominated_node_name, new.status.nominated_node_name
        self.put(new, told[1] if any(told) else self.node_of(old.metadata.uid))

    def remove(self, uid: str) -> None:
        node = self._node.pop(uid, "")
        if node:
            del self._pods[node][uid]
            if not self._pods[node]:
                del self._pods[node]

    def __len__(self) -> int:
        return len(self._node)
