"""PodTopologySpread's preference: nodes in domains with fewer matching pods score higher.

Base of the rule in `podtopologyspread`. Domains of a label with few values weigh less than those of a label with many;
the host name is counted on each node alone, without the constraint's policies (kube-scheduler spec 1.12)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.pods import domains, spreadconstraints
from numalign.placement.rules.pods.spreadconstraints import HOSTNAME, SpreadConstraint, SpreadSource
from numalign.placement.rules.rowclasses import ABSENT, Ids, RowClasses
from numalign.placement.rules.rule import MAX_SCORE, Rows, Scores

NO_VALUE: Final = ""


class SpreadScores(Struct, frozen=True):
    """Raw scores of all rows, before rounding, and the rows that are not scored at all."""

    points: NDArray[np.float64]
    ignored: Flags
    rows: Rows


class SpreadScore:
    def __init__(self, source: SpreadSource) -> None:
        self._source = source

    def concerns(self, pod: Pod) -> bool:
        """Whether there is a constraint of either kind; quick."""
        return self._source.has_any(pod)

    @property
    def surroundings(self) -> int:
        return self._source.generation

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> SpreadScores | None:
        constraints = self._source.constraints(pod, spreadconstraints.SHOULD)
        if not constraints:
            return None
        eligible = np.ones(world.capacity, np.bool_)
        if self._source.needs_all_keys(pod):
            eligible = spreadconstraints.with_all_keys(world, constraints)
        scored = rows[eligible[rows]]
        points = np.zeros(world.capacity)
        for each in constraints:
            points += self._points(pod, world, each, eligible & world.present, scored)
        return SpreadScores(points=points, ignored=~eligible, rows=rows)

    def score(self, prepared: SpreadScores, rows: Rows) -> Scores:
        # Rounded to the nearest, halves away from zero; there is nothing below zero.
        raw = np.floor(prepared.points[rows] + 0.5).astype(np.int64)
        return np.where(prepared.ignored[rows], 0, raw)

    def normalized(self, prepared: SpreadScores, raw: Scores) -> Scores:
        ignored = prepared.ignored[prepared.rows]
        kept = raw[~ignored]
        highest, lowest = int(kept.max(initial=0)), int(kept.min()) if len(kept) else 0
        even = np.full(len(raw), MAX_SCORE, np.int64)
        normal = MAX_SCORE * (highest + lowest - raw) // highest if highest else even
        return np.where(ignored, 0, normal)

    def _points(
        self, pod: Pod, world: ClusterState, constraint: SpreadConstraint, eligible: Flags, scored: Rows
    ) -> NDArray[np.float64]:
        column = world.labels.column(constraint.key)
        by_row = self._source.matching(pod, constraint)
        if constraint.key == HOSTNAME:
            counts, size = by_row, len(scored)
        else:
            policies = spreadconstraints.included(world, pod, constraint)
            among = eligible if policies is None else eligible & policies
            of_row = _with_unlabelled(column)
            sums = domains.by_class(of_row, by_row, among, len(column.values))
            counts, size = domains.gathered(sums, of_row), len(np.unique(of_row[scored]))
        points = counts * math.log(size + 2) + (constraint.max_skew - 1)
        return np.where(column.ids != ABSENT, points, 0.0)


def _with_unlabelled(column: RowClasses[str]) -> Ids:
    """Domains where rows without the label count as having an empty one, which stock scoring does not tell apart."""
    empty = column.number(NO_VALUE)
    return column.ids if empty is None else np.where(column.ids == ABSENT, empty, column.ids)
