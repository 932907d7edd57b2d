"""Keeps pods that a kubelet may align off nodes of which too little is known, for a while or for good.

Filters of profiles that look at zones, in the exact flavour; the reference flavour allows every pod there, as the Go
plugin does. `TopologyReports` is about nodes without a report, `AnsweringKubelets` about nodes whose report says that
the kubelet does not answer: a kubelet that starts admits the pods that wait for it before device plugins register, and
before it removes what pods that are gone have left. `AwaitedNodes` knows the nodes; none of them are in the reference
flavour. Other pods are not held up: no kubelet rejects them for their zones."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from numalign.api.objects import qos, requests
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.plugins import ZONES
from numalign.placement.rules.awaited import AwaitedNodes
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Coded, Codes, Refusal, Refusals, StaticFilter

NodesWithoutReport = Literal["allow", "wait", "refuse"]
GRACE: Final = 60.0
"""Seconds that a Ready node has for its first report."""
LONGEST_AWAY: Final = 120.0
"""Seconds for which a kubelet is taken to be away because the report said so. The Node is not Ready long before, and if
the agent ended as well, nothing says that the kubelet is back."""
AWAITED: Final = "node(s) had no topology report yet"
REFUSED: Final = "node(s) had no topology report"
AWAY: Final = "node(s) had a kubelet that did not answer"


class AwaitedNodesFilter(StaticFilter):
    """Keeps pods that a kubelet may align off nodes that are awaited. `grace`: for how long; infinite: for good."""

    name: Final = ZONES
    """Users know it as a part of that plugin."""

    def __init__(self, nodes: AwaitedNodes, grace: float, reason: str) -> None:
        self._nodes = nodes
        self._grace = grace
        # Taking pods off the node does not help.
        self._refusals = Refusals(Refusal((reason,), unresolvable=True))
        self._codes: tuple[int, Codes, bool] | None = None
        """With the generation of the nodes that they are about, and whether there is any."""
        if grace < float("inf"):
            nodes.watch(grace)

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        _, codes, has_any = self._by_row(world)
        if not has_any or not qos.may_be_aligned(qos.of(pod), requests.effective(pod)):
            return None
        return Coded(codes, self._refusals)

    def filter_alone(self, prepared: Coded) -> Codes:
        return prepared.codes

    def holds(self, pod: Pod, row: int, world: ClusterState) -> bool:
        """Whether the pod stays off the node of this row."""
        prepared = self.prepare(pod, world)
        return prepared is not None and bool(prepared.codes[row])

    def _by_row(self, world: ClusterState) -> tuple[int, Codes, bool]:
        known = self._codes
        if known is None or known[0] != self._nodes.generation or len(known[1]) != world.capacity:
            codes = np.zeros(world.capacity, np.int32)
            waiting = self._nodes.waiting(self._grace)
            codes[waiting] = 1
            known = self._codes = self._nodes.generation, codes, bool(waiting)
        return known


class TopologyReports(AwaitedNodesFilter):
    def __init__(self, nodes: AwaitedNodes, policy: Literal["wait", "refuse"], grace: float = GRACE) -> None:
        waits = policy == "wait"
        super().__init__(nodes, grace if waits else float("inf"), AWAITED if waits else REFUSED)


class AnsweringKubelets(AwaitedNodesFilter):
    def __init__(self, nodes: AwaitedNodes) -> None:
        super().__init__(nodes, LONGEST_AWAY, AWAY)
