"""NodeUnschedulable: cordoned nodes take only pods that tolerate the taint of cordoned nodes.

The taint need not be there: the flag alone keeps pods away (kube-scheduler spec 1.3)."""

from __future__ import annotations

from typing import Final

from numalign.api.objects import nodematching
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState, TaintKey
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import Coded, Fixed, Refusal, Refusals, StaticFilter

CORDONED: Final[TaintKey] = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
UNSCHEDULABLE: Final = Refusal(("node(s) were unschedulable",), unresolvable=True)


class NodeUnschedulable(StaticFilter):
    name: Final = "NodeUnschedulable"

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        if nodematching.tolerated(*CORDONED, pod.spec.tolerations):
            return None
        return Coded(codes=world.cordoned, refusals=Refusals(UNSCHEDULABLE))

    def filter_alone(self, prepared: Coded) -> Follows:
        return Fixed(prepared.codes)
