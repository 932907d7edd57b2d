"""NodeName: a pod that names its node goes nowhere else.

Such pods are normally bound already and never asked about; others have nothing to say here."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Coded, Refusal, Refusals, StaticFilter

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
