"""TaintToleration: taints keep pods away from nodes, or ask them to stay away.

Filters by NoSchedule and NoExecute taints; scores by how few PreferNoSchedule taints a pod does not tolerate. Up to
1.34 the reason named the taint; since then it is the same for all (kube-scheduler spec 1.5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from numalign.api.objects.pod import Pod
from numalign.placement.rules import normalising
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes import tolerations
from numalign.placement.rules.rowclasses import Answers
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import MAX_SCORE, Coded, Fixed, Refusal, Refusals, Rows, Scores, StaticFilter

UNTOLERATED: Final = Refusal(("node(s) had untolerated taint(s)",), unresolvable=True)


class TaintToleration(StaticFilter):
    name: Final = "TaintToleration"

    def prepare(self, pod: Pod, world: ClusterState) -> Coded:
        return Coded(codes=tolerations.kept_away(world, pod.spec.tolerations), refusals=Refusals(UNTOLERATED))

    def filter_alone(self, prepared: Coded) -> Follows:
        return Fixed(prepared.codes)

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> Answers:
        return tolerations.unwelcoming(world, pod.spec.tolerations)

    def score(self, prepared: Answers, rows: Rows) -> Scores:
        return prepared[rows].astype(np.int64)

    def normalized(self, prepared: Answers, raw: Scores) -> Scores:
        return normalising.by_largest_reversed(raw)

    def score_alone(self, prepared: Answers) -> Follows | None:
        """Where no node asks anybody to stay away, all are as welcoming as can be."""
        return None if prepared.any() else Fixed(np.full(len(prepared), MAX_SCORE, np.int64))
