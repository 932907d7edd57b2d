"""Keeps pods that a kubelet may align off nodes whose zones are not known, for a while or for good.

A filter of profiles that look at zones, in the exact flavour; the reference flavour allows every pod there, as the Go
plugin does. `UnreportedNodes` knows the nodes; none of them are in the reference flavour. Other pods are not held up:
no kubelet rejects them for their zones."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from numalign.api.objects import qos, requests
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.plugins import ZONES
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import Coded, Codes, Fixed, Refusal, Refusals, StaticFilter
from numalign.placement.rules.unreported import UnreportedNodes

NodesWithoutReport = Literal["allow", "wait", "refuse"]
GRACE: Final = 60.0
"""Seconds that a Ready node has for its first report."""
AWAITED: Final = "node(s) had no topology report yet"
REFUSED: Final = "node(s) had no topology report"


class TopologyReports(StaticFilter):
    name: Final = ZONES
    """Users know it as a part of that plugin."""

    def __init__(self, nodes: UnreportedNodes, policy: Literal["wait", "refuse"], grace: float = GRACE) -> None:
        self._nodes = nodes
        self._grace = grace if policy == "wait" else float("inf")
        # Taking pods off the node does not make it report.
        self._refusals = Refusals(Refusal((AWAITED if policy == "wait" else REFUSED,), unresolvable=True))
        self._codes: tuple[int, Codes] | None = None
        """With the generation of the nodes that they are about."""
        if policy == "wait":
            nodes.watch(grace)

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | None:
        codes = self._by_row(world)
        if not codes.any() or not qos.may_be_aligned(qos.of(pod), requests.effective(pod)):
            return None
        return Coded(codes, self._refusals)

    def filter_alone(self, prepared: Coded) -> Fixed:
        return Fixed(prepared.codes)

    def holds(self, pod: Pod, row: int, world: ClusterState) -> bool:
        """Whether the pod stays off the node of this row."""
        prepared = self.prepare(pod, world)
        return prepared is not None and bool(prepared.codes[row])

    def _by_row(self, world: ClusterState) -> Codes:
        known = self._codes
        if known is None or known[0] != self._nodes.generation or len(known[1]) != world.capacity:
            codes = np.zeros(world.capacity, np.int32)
            codes[self._nodes.waiting(self._grace)] = 1
            known = self._codes = self._nodes.generation, codes
        return known[1]
