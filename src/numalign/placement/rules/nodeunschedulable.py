"""NodeUnschedulable: cordoned nodes take only pods that tolerate the taint of cordoned nodes.

The taint need not be there: the flag alone keeps pods away (kube-scheduler spec 1.3)."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.api.pod import Pod
from numalign.placement.rules import tolerations
from numalign.placement.rules.rule import Coded, Refusal, Refusals, StaticFilter
from numalign.placement.rules.world import TaintKey, World

CORDONED: Final[TaintKey] = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
UNSCHEDULABLE: Final = Refusal(("node(s) were unschedulable",), unresolvable=True)


class NodeUnschedulable(StaticFilter):
    name: Final = "NodeUnschedulable"

    def prepare(self, pod: Pod, world: World) -> Coded | None:
        if tolerations.tolerated(CORDONED, pod.spec.tolerations):
            return None
        return Coded(codes=world.unschedulable.astype(np.int32), refusals=Refusals(UNSCHEDULABLE))
