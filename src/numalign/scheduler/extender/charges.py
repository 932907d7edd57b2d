"""Keeps the pods that the extender has charged to a node and whose binding is not seen yet.

`extender` calls it. kube-scheduler's choice shows at the API server only later, if at all. So a charge ends when the
watch shows the pod on a node, when kube-scheduler asks about the pod again, or after a while. A pod that is bound, or
whose Binding was sent, stays where it is, whatever kube-scheduler asks: the Binding may take effect although its answer
was lost or came too late. Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Decision, Wake
from numalign.scheduler.choose.cluster import AssumedDecision, Cluster

PREPARING: Final = 600.0
"""Seconds for which kube-scheduler may prepare volumes and claims before it binds (its own default limit)."""


class Charges:
    def __init__(self, cluster: Cluster, hold: float, woken: Callable[[list[Wake]], None]) -> None:
        """`hold`: seconds for which a pod stays charged whose binding is not seen. `woken`: called with the nodes on
        which the end of a charge makes room."""
        self._cluster, self._hold, self._woken = cluster, hold, woken
        self._until: dict[str, float] = {}
        """By uid: until when the charge of a pod lasts whose binding is not seen."""
        self._binding: set[str] = set()
        """Uids of pods whose Binding waits for its answer."""

    def __len__(self) -> int:
        return len(self._until)

    def of(self, uid: str) -> AssumedDecision | None:
        return self._cluster.assumed.get(uid)

    def charge(self, pod: Pod, decision: Decision, now: float) -> None:
        self._cluster.assume(pod, decision)
        self._until[pod.metadata.uid] = now + (max(self._hold, PREPARING) if _needs_preparation(pod) else self._hold)

    def node_of(self, uid: str) -> str:
        """The node that the pod is bound to, or that its Binding was sent for; empty: it may go anywhere."""
        assumed = self.of(uid)
        if assumed is None:
            return self._cluster.node_of(uid)
        return assumed.decision.node if assumed.is_sent else ""

    def is_open(self, uid: str) -> bool:
        """Whether a Binding was sent whose answer is not known and will not come."""
        assumed = self.of(uid)
        return assumed is not None and assumed.is_sent and not assumed.is_bound and uid not in self._binding

    def is_tentative(self, uid: str) -> bool:
        """Whether kube-scheduler may know nothing of the pod's node."""
        assumed = self.of(uid)
        return assumed is not None and not assumed.is_sent

    @contextmanager
    def sending(self, uid: str) -> Iterator[None]:
        """While the Binding of the pod is under way."""
        self._cluster.sends(uid)
        self._binding.add(uid)
        try:
            yield
        finally:
            self._binding.discard(uid)

    def bound(self, uid: str) -> None:
        """The API server has the pod on its node: the charge stays until the watch shows it."""
        self._until.pop(uid, None)
        self._cluster.bound(uid)

    def release(self, uid: str) -> None:
        """The pod does not go where it is charged."""
        if self._until.pop(uid, None) is not None:
            self._woken(self._cluster.forget(uid))

    def tick(self, now: float) -> None:
        """Ends charges of pods whose binding was not seen in time."""
        for uid in [uid for uid, until in self._until.items() if now >= until or self.of(uid) is None]:
            assumed = self.of(uid)
            if assumed is None:
                del self._until[uid]
            elif not assumed.is_sent:
                self.release(uid)


def _needs_preparation(pod: Pod) -> bool:
    """Whether kube-scheduler may wait for volumes or devices between its choice and the Binding."""
    spec = pod.spec
    return bool(spec.resource_claims) or any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes)
