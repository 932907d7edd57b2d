"""NodeResourcesBalancedAllocation: prefers nodes whose resources are evenly used after placing the pod.

Since 1.36 the change counts, with 75 for no change; before, only the balance afterwards (kube-scheduler spec 1.10)."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.api.objects import requests
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import NodeResourcesBalancedAllocationArgs
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodeamounts import AmountTerms
from numalign.placement.rules.resources import strategies
from numalign.placement.rules.rule import Rows, Scores
from numalign.placement.rules.totals import ByAmounts, Totals

DEFAULTS: Final = NodeResourcesBalancedAllocationArgs()


class NodeResourcesBalancedAllocation:
    name: Final = "NodeResourcesBalancedAllocation"

    def __init__(self, args: NodeResourcesBalancedAllocationArgs = DEFAULTS) -> None:
        self._resources = args.resources

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> ByAmounts | None:
        terms = self._terms(pod, world.totals)
        # Pods that ask for nothing would all go to the same node.
        return ByAmounts(terms, world.totals) if any(terms.amounts) else None

    def score(self, prepared: ByAmounts, rows: Rows) -> Scores:
        return prepared.rows(rows).astype(np.int64)

    def normalized(self, prepared: ByAmounts, raw: Scores) -> Scores:
        return raw

    def score_amounts(self, prepared: ByAmounts) -> ByAmounts:
        return prepared

    def _terms(self, pod: Pod, amounts: Totals) -> AmountTerms:
        def read() -> AmountTerms:
            added = strategies.read(self._resources, amounts.held(pod), amounts, as_scored=False)
            return AmountTerms(nodeamounts.BALANCE, added)

        return read() if requests.is_resized(pod) else amounts.once((self.name, self._resources), pod, read)
