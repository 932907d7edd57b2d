"""Taints of nodes beside the tolerations of a pod.

TaintToleration and NodeUnschedulable ask for a pod, topology spreading when it leaves out nodes that the pod cannot
use."""

from __future__ import annotations

from typing import Final

from numalign.api.objects.nodematching import tolerated
from numalign.api.objects.pod import Toleration
from numalign.placement.rules.clusterstate import ClusterState, TaintKey
from numalign.placement.rules.rowclasses import Answers

KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
PREFERS_AWAY: Final = "PreferNoSchedule"


def kept_away(world: ClusterState, tolerations: tuple[Toleration, ...]) -> Answers:
    """By row: 1 where some taint keeps a pod with these tolerations away."""

    def answer(taints: tuple[TaintKey, ...] | None) -> int:
        return any(taint[2] in KEEPS_AWAY and not tolerated(*taint, tolerations) for taint in taints or ())

    return world.taints.table((KEEPS_AWAY, tolerations), answer)


def unwelcoming(world: ClusterState, tolerations: tuple[Toleration, ...]) -> Answers:
    """By row: how many taints ask a pod with these tolerations to stay away if it can."""
    relevant = tuple(each for each in tolerations if each.effect in ("", PREFERS_AWAY))

    def answer(taints: tuple[TaintKey, ...] | None) -> int:
        return sum(taint[2] == PREFERS_AWAY and not tolerated(*taint, relevant) for taint in taints or ())

    return world.taints.table((PREFERS_AWAY, relevant), answer)
