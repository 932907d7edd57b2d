"""The total score of the nodes that a pod may go to: every rule's normalised score by its weight, zones among them.

`choosing` calls `totals`. Rules score only nodes that passed all filters, because their scores are relative to those
(kube-scheduler spec 4.7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.rule import Rows, Scores
from numalign.scheduler.choose.profiles import Scored

Parts = dict[str, Scores]
"""By plugin, what it adds to the total of each row."""


def totals(pod: Pod, rules: Sequence[Scored], world: World, rows: Rows, parts: Parts | None = None) -> Scores:
    """`parts`: filled in, for whoever wants to know where totals come from."""
    total: NDArray[np.int64] = np.zeros(len(rows), np.int64)
    for scored in rules:
        prepared = scored.rule.prepare_score(pod, world, rows)
        if prepared is None:
            continue
        part = scored.weight * scored.rule.normalized(prepared, scored.rule.score(prepared, rows))
        total += part
        if parts is not None:
            parts[scored.rule.name] = part
    return total


def sought(nodes: int, percentage: int) -> int:
    """How many fitting nodes are enough (kube-scheduler spec 4.3)."""
    if nodes < 100 or percentage >= 100:
        return nodes
    if percentage <= 0:
        percentage = max(5, 50 - nodes // 125)
    return max(100, nodes * percentage // 100)
