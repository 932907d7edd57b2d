"""Remembers the pods that the extender refused on every node, and says when to look at them again.

kube-scheduler tries a refused pod again after an event of the API server. It does not watch the reports of zones, and
it tries a pod right after another one was deleted, whose containers may still run. So the pod could wait for
kube-scheduler's own timeout of five minutes, although a node admits it by now. `extender` asks at intervals which pods
are due: those whose refusal is older than the last improvement of some node, and, where the extender evicts pods
itself, each pod once after every refusal. Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod

AT_ONCE: Final = 32
"""Pods at a time, so that questions of kube-scheduler do not wait for them."""


class RefusedPod(Struct):
    uid: str
    priority: int
    since: float
    """When kube-scheduler last asked about it."""
    is_due: bool = False
    is_new: bool = True
    """Whether it was not looked at since then."""


class RefusedPods:
    def __init__(self, pause: float | None = None) -> None:
        """`pause`: seconds after which a pod is looked at without an improvement; None: never."""
        self._pause, self._pods = pause, dict[str, RefusedPod]()

    def put(self, pod: Pod, now: float) -> None:
        """Every node refuses the pod now."""
        uid = pod.metadata.uid
        self._pods[uid] = RefusedPod(uid, pod.spec.priority, now)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def drop(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def improved(self) -> None:
        """Some node may admit more than before."""
        for each in self._pods.values():
            each.is_due = True

    def due(self, waiting: Collection[str], now: float) -> tuple[str, ...]:
        """The uids to look at now, the most important first. Pods that are not among the waiting ones are forgotten."""
        for uid in [uid for uid in self._pods if uid not in waiting]:
            del self._pods[uid]
        ready = sorted((each for each in self._pods.values() if self._is_due(each, now)), key=_order)[:AT_ONCE]
        for each in ready:
            each.is_due = each.is_new = False
        return tuple(each.uid for each in ready)

    def _is_due(self, refused: RefusedPod, now: float) -> bool:
        return refused.is_due or (refused.is_new and self._pause is not None and now >= refused.since + self._pause)


def _order(refused: RefusedPod) -> tuple[int, float]:
    return -refused.priority, refused.since
