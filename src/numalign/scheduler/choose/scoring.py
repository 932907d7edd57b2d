"""Scores nodes: the weighted sum of every plugin's normalized score, zones included.

`choose` calls `totals` for the nodes that passed all filters, because scores are relative to those (kube-scheduler
spec 4.7). Certainty of admission comes before the score. `ScoreDetails` records what each plugin added and how long
each phase took, for the decision log and the metrics. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

import numpy as np

from numalign.api.decode.structs import Wire
from numalign.api.objects import qos
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Certainty
from numalign.placement.rules import rule
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodeamounts import AmountTerms
from numalign.placement.rules.rule import Rows, Scores
from numalign.placement.rules.totals import ByAmounts
from numalign.scheduler.profiles import ZONES, Scored

Parts = dict[str, Scores]
"""By plugin, what it adds to the total of each row."""


def totals(pod: Pod, rules: Sequence[Scored], world: ClusterState, rows: Rows, parts: Parts | None = None) -> Scores:
    """`parts`: filled in with the scores by plugin."""
    others: list[Scores] = []
    # What every node gets is added once, and not row by row.
    same, highest = 0, rule.highest(len(rows))
    by_amounts: list[tuple[int, AmountTerms]] = []
    for scored in rules:
        prepared = scored.rule.prepare_score(pod, world, rows)
        if prepared is None:
            continue
        if parts is None and isinstance(prepared, ByAmounts):
            by_amounts.append((scored.weight, prepared.terms))
            continue
        part = scored.rule.normalized(prepared, scored.rule.score(prepared, rows))
        if parts is None and part is highest:
            same += scored.weight * rule.MAX_SCORE
            continue
        if scored.weight != 1:
            part = scored.weight * part
        others.append(part)
        if parts is not None:
            parts[scored.rule.name] = part
    # A new array.
    total = world.totals.summed(by_amounts, rows, same)
    for part in others:
        total += part
    return total


def sought(nodes: int, percentage: int) -> int:
    """How many fitting nodes are enough (kube-scheduler spec 4.3)."""
    if nodes < 100 or percentage >= 100:
        return nodes
    if percentage <= 0:
        percentage = max(5, 50 - nodes // 125)
    return max(100, nodes * percentage // 100)


NOMINATED: Final = 3
"""Above every `Certainty`: the node was nominated for the pod earlier."""
BY_SCORE: Final = int(Certainty.BY_SCORE)


def is_aligned(shape: Shape) -> bool:
    """Whether kubelets may pin something of pods of this shape."""
    return qos.may_be_aligned(shape.qos, shape.totals)


MOST: Final = 3


class Phase(StrEnum):
    FILTER = "filter"
    ZONES = "zones"
    SCORE = "score"
    PLACE = "place"


class NodeScore(Wire, frozen=True):
    """A node that was looked at: the total that counted, and what each plugin added to it."""

    node: str
    total: int
    plugins: dict[str, int]


class ScoreDetails:
    def __init__(self, now: Callable[[], float]) -> None:
        self.phases: dict[str, float] = {}
        """Seconds by phase."""
        self._now, self._last = now, now()
        self._parts: Parts = {}
        self._rows: Rows = np.zeros(0, np.intp)
        self._totals: Scores = np.zeros(0, np.int64)

    def ended(self, phase: Phase) -> None:
        now = self._now()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now

    def begun(self) -> Parts | None:
        """Where scoring puts what each plugin says; what it said before does not count any more."""
        self._parts = {}
        return self._parts

    def saw(self, rows: Rows, totals: Scores, zones: Scores) -> None:
        self._rows, self._totals = rows, totals
        self._parts[ZONES] = zones
        self.ended(Phase.SCORE)

    def best(self, world: ClusterState, chosen: str) -> tuple[NodeScore, ...]:
        """The chosen node first, then others by their totals."""
        order = np.argsort(-self._totals, kind="stable")[: MOST + 1].tolist()
        names = {world.names[int(self._rows[place])]: place for place in order}
        places = np.flatnonzero(self._rows == world.rows.get(chosen, -1)).tolist()
        places += [place for name, place in names.items() if name != chosen]
        return tuple(self._ranked(world, place) for place in places[:MOST])

    def of(self, world: ClusterState, node: str) -> NodeScore | None:
        """None: it was not among those that were scored."""
        places = np.flatnonzero(self._rows == world.rows.get(node, -1)).tolist()
        return self._ranked(world, places[0]) if places else None

    def every(self, world: ClusterState) -> tuple[NodeScore, ...]:
        """All nodes that were scored, the best first."""
        order = np.argsort(-self._totals, kind="stable").tolist()
        return tuple(self._ranked(world, place) for place in order)

    def _ranked(self, world: ClusterState, place: int) -> NodeScore:
        plugins = {name: int(part[place]) for name, part in self._parts.items()}
        return NodeScore(world.names[int(self._rows[place])], int(self._totals[place]), plugins)


class _NoScoreDetails(ScoreDetails):
    """For attempts without details."""

    def ended(self, phase: Phase) -> None: ...

    def begun(self) -> Parts | None:
        return None

    def saw(self, rows: Rows, totals: Scores, zones: Scores) -> None: ...


UNRANKED: Final = _NoScoreDetails(lambda: 0.0)
