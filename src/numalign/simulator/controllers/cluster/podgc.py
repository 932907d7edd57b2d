"""Pods that nobody takes away: too many finished ones, those of nodes that are gone, deleted ones that never ran.

Looks at all pods every 20 s, as the real one does; a node counts as gone when it is missing for 40 s."""

from collections.abc import Iterable, Sequence, Set
from datetime import datetime
from typing import Final

from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.controllers.framework import conditions
from numalign.simulator.controllers.framework.actions import Action, Again, Merge, Remove
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.controllers.workloads import pods
from numalign.simulator.trees import Tree

PERIOD: Final = 20.0
QUARANTINE: Final = 40.0
THRESHOLD: Final = 12_500
"""Finished pods that may stay."""
EVERY_POD: Final = ("", "")


class PodGarbage:
    name = "pod-garbage-collector-controller"

    def __init__(self, threshold: int = THRESHOLD) -> None:
        self._threshold = threshold
        self._missing: dict[str, float] = {}

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        desk.note(EVERY_POD)

    def look(self, key: Key) -> Iterable[Action]:
        views, clock = self._desk.views, self._desk.api.clock
        every = list(views[PODS])
        gone = self._gone(every, clock.now())
        return [*collect_pods(every, gone, self._threshold, clock.wall()), Again(PERIOD)]

    def _gone(self, every: Sequence[Tree], now: float) -> set[str]:
        named = {pod["spec"].get("nodeName") for pod in every}
        missing = {name for name in named if name and self._desk.views[NODES].get(("", name)) is None}
        self._missing = {name: self._missing.get(name, now) for name in sorted(missing)}
        return {name for name, since in self._missing.items() if now - since >= QUARANTINE}


def collect_pods(every: Sequence[Tree], gone: Set[str], threshold: int, now: datetime) -> list[Action]:
    finished = sorted(filter(pods.is_finished, every), key=_expendable)
    surplus = finished[: max(0, len(finished) - threshold)] if threshold > 0 else []
    orphaned = [pod for pod in every if pod["spec"].get("nodeName") in gone]
    unborn = [pod for pod in every if pods.is_terminating(pod) and not pod["spec"].get("nodeName")]
    reason = conditions.made("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
    return [
        *(action for pod in surplus for action in _removed(pod, None, now)),
        *(action for pod in orphaned for action in _removed(pod, reason, now)),
        *(action for pod in unborn for action in _removed(pod, None, now)),
    ]


def _expendable(pod: Tree) -> tuple[bool, str, str]:
    metadata, status = pod["metadata"], pod.get("status") or {}
    return status.get("reason") != "Evicted", metadata.get("creationTimestamp") or "", metadata["name"]


def _removed(pod: Tree, reason: Tree | None, now: datetime) -> list[Action]:
    """Nobody else will say that it ended."""
    failed: list[Action] = []
    if not pods.is_finished(pod):
        listed = conditions.listed(pod)
        status = {"phase": "Failed", "conditions": conditions.put(listed, reason, now) if reason else listed}
        failed.append(Merge(PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}, "status"))
    return [*failed, Remove(PODS, pod, grace=0)]
