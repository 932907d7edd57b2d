"""The total score of the nodes that a pod may go to: every rule's normalised score by its weight, zones among them.

`choosing` calls `totals`. Rules score only nodes that passed all filters, because their scores are relative to those
(kube-scheduler spec 4.7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numalign.api.pod import Pod
from numalign.placement.rules.rule import Rows, Scores
from numalign.placement.rules.world import World
from numalign.scheduler.profiles import Scored


def totals(pod: Pod, rules: Sequence[Scored], world: World, rows: Rows) -> Scores:
    total: NDArray[np.int64] = np.zeros(len(rows), np.int64)
    for scored in rules:
        prepared = scored.rule.prepare_score(pod, world, rows)
        if prepared is None:
            continue
        total += scored.weight * scored.rule.normalized(prepared, scored.rule.score(prepared, rows))
    return total


def sought(nodes: int, percentage: int) -> int:
    """How many fitting nodes are enough (kube-scheduler spec 4.3)."""
    if nodes < 100 or percentage >= 100:
        return nodes
    if percentage <= 0:
        percentage = max(5, 50 - nodes // 125)
    return max(100, nodes * percentage // 100)
