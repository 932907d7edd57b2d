"""Whether a pod that had others evicted is still to wait for its node.

`preemption` asks before it evicts more. As long as victims are seen on the node, and as their containers may still run
there; and until the node's report, which still shows them, is followed by another one. The first is the stock
scheduler's rule (kube-scheduler spec 1.20); zones come free later than the node's totals, which takes the others."""

from __future__ import annotations

from typing import Final

from numalign.api.objects.pod import Pod
from numalign.scheduler.choose.choose import NoNode
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.queue.nominations import Nominations

DISRUPTED: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"
PATIENCE: Final = 60.0
"""Seconds after the victims' end in which a report is expected that does not show them any more."""
SMALL: Final = 64


class Promises:
    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._kept: dict[str, float] = {}
        """By uid: when all victims were first found to be gone."""

    def is_pending(self, pod: Pod, found: NoNode, now: float) -> bool:
        uid = pod.metadata.uid
        node = self._nominations.node_of(uid) or pod.status.nominated_node_name
        row = self._cluster.world.rows.get(node)
        if row is None or row in found.unresolvable:
            return False
        if self._has_terminating(pod, row):
            return True
        victims = self._nominations.victims_of(uid)
        if any(each in self._cluster.world.pods or self._cluster.engine.charges(each) for each in victims):
            return True
        return bool(victims) and self._is_report_due(uid, found.code(row), now)

    def _has_terminating(self, pod: Pod, row: int) -> bool:
        there = (each.pod for each in self._cluster.world.on_row[row].values())
        return any(each.spec.priority < pod.spec.priority and _is_preempted(each) for each in there)

    def _is_report_due(self, uid: str, code: int, now: float) -> bool:
        since = self._kept.setdefault(uid, now)
        if len(self._kept) > SMALL + 2 * len(self._nominations):
            self._kept = {each: at for each, at in self._kept.items() if self._nominations.victims_of(each)}
        return self._cluster.engine.waits_for_report(code) and now < since + PATIENCE


def _is_preempted(pod: Pod) -> bool:
    """Whether it is on its way out because a scheduler wanted so."""
    if pod.metadata.deletion_timestamp is None:
        return False
    condition = next((each for each in pod.status.conditions if each.type == DISRUPTED), None)
    return condition is not None and condition.status == "True" and condition.reason == BY_SCHEDULER
