"""Filters that read the spec of the Node: NodeName, NodeUnschedulable, TaintToleration and NodeDeclaredFeatures.

TaintToleration filters by NoSchedule and NoExecute taints, and scores by the number of PreferNoSchedule taints that
a pod does not tolerate (kube-scheduler spec 1.5). NodeUnschedulable rejects cordoned nodes unless the pod tolerates
their taint, whether the taint is present or not (1.3). NodeDeclaredFeatures knows the three features of 1.37 that
matter to pending pods (1.19). Topology spreading uses `kept_away`, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from numalign.api.objects import nodematching
from numalign.api.objects.nodematching import tolerated
from numalign.api.objects.pod import Pod, Toleration
from numalign.placement.rules import rule
from numalign.placement.rules.clusterstate import ClusterState, TaintKey
from numalign.placement.rules.rowclasses import Answers
from numalign.placement.rules.rule import Coded, Codes, Refusal, Refusals, Rows, Scores, StaticFilter, span

KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
PREFERS_AWAY: Final = "PreferNoSchedule"


def kept_away(world: ClusterState, tolerations: tuple[Toleration, ...]) -> Answers:
    """By row: 1 if the node has a taint that these tolerations do not tolerate."""

    def answer(taints: tuple[TaintKey, ...] | None) -> int:
        return any(taint[2] in KEEPS_AWAY and not tolerated(*taint, tolerations) for taint in taints or ())

    return world.taints.table((KEEPS_AWAY, tolerations), answer)


def unwelcoming(world: ClusterState, tolerations: tuple[Toleration, ...]) -> Answers:
    """By row: the number of PreferNoSchedule taints that these tolerations do not tolerate."""
    relevant = tuple(each for each in tolerations if each.effect in ("", PREFERS_AWAY))

    def answer(taints: tuple[TaintKey, ...] | None) -> int:
        return sum(taint[2] == PREFERS_AWAY and not tolerated(*taint, relevant) for taint in taints or ())

    return world.taints.table((PREFERS_AWAY, relevant), answer)


UNTOLERATED: Final = Refusal(("node(s) had untolerated taint(s)",), unresolvable=True)


class TaintToleration(StaticFilter):
    name: Final = "TaintToleration"

    def prepare(self, pod: Pod, world: ClusterState) -> Coded:
        return Coded(codes=kept_away(world, pod.spec.tolerations), refusals=Refusals(UNTOLERATED))

    def filter_alone(self, prepared: Coded) -> Codes:
        return prepared.codes

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> Answers:
        return unwelcoming(world, pod.spec.tolerations)

    def score(self, prepared: Answers, rows: Rows) -> Scores:
        return prepared[span(rows)].astype(np.int64)

    def normalized(self, prepared: Answers, raw: Scores) -> Scores:
        return rule.by_largest_reversed(raw)

    def score_alone(self, prepared: Answers) -> Scores | None:
        """If no node has an untolerated PreferNoSchedule taint, all nodes get the highest score."""
        return None if prepared.any() else rule.highest(len(prepared))


CORDONED: Final[TaintKey] = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
UNSCHEDULABLE: Final = Refusal(("node(s) were unschedulable",), unresolvable=True)


class NodeUnschedulable(StaticFilter):
    name: Final = "NodeUnschedulable"

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        if nodematching.tolerated(*CORDONED, pod.spec.tolerations):
            return None
        return Coded(codes=world.cordoned, refusals=Refusals(UNSCHEDULABLE))

    def filter_alone(self, prepared: Coded) -> Codes:
        return prepared.codes


OTHER_NAME: Final = Refusal(("node(s) didn't match the requested node name",), unresolvable=True)


class NodeName(StaticFilter):
    name: Final = "NodeName"

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.node_name)

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        wanted = pod.spec.node_name
        if not wanted:
            return None
        codes = np.ones(world.capacity, np.int32)
        if wanted in world.rows:
            codes[world.rows[wanted]] = 0
        return Coded(codes=codes, refusals=Refusals(OTHER_NAME), only=frozenset({wanted}))


RESTART_ALL: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACE_ON_HOST: Final = "UserNamespacesHostNetworkSupport"
BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"

NOT_DECLARED: Final = Refusal(("node(s) didn't match Pod's required features",), unresolvable=True)


class NodeDeclaredFeatures(StaticFilter):
    name: Final = "NodeDeclaredFeatures"

    def concerns(self, pod: Pod) -> bool:
        return any(_needed(pod))

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        needed = frozenset(_needed(pod))
        if not needed:
            return None

        def lacking(declared: frozenset[str] | None) -> int:
            return not needed <= (declared or frozenset())

        return Coded(codes=world.features.table(needed, lacking), refusals=Refusals(NOT_DECLARED))


def _needed(pod: Pod) -> Iterator[str]:
    containers = pod.in_admission_order()
    if any(rule.action == "RestartAllContainers" for each in containers for rule in each.restart_policy_rules):
        yield RESTART_ALL
    if pod.spec.host_network and pod.spec.host_users is False:
        yield USER_NAMESPACE_ON_HOST
    if any(mount.bind_mount_options for each in containers for mount in each.volume_mounts):
        yield BIND_MOUNT_OPTIONS
