"""Which node a pod goes to: filters, zones, scores, and the best node on which the pod is certain to be admitted.

`cycle` calls `choose` once per attempt. Where a node is found, the engine has charged it already. Nothing else is
written, and nothing here knows a clock or a network: the same cluster, pod and randomness give the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from numalign.api import resourcenames
from numalign.api.pod import Pod
from numalign.api.qos import QoS
from numalign.placement.decisions import LAST_RESORT, Decision, Randomness
from numalign.placement.pick import Codes
from numalign.placement.rules.rule import Refusal, Rows, Scores
from numalign.placement.shapes import Shape
from numalign.scheduler import filtering, scoring
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.filtering import Filtered, Refused
from numalign.scheduler.profiles import Profile

TIER: Final = 1 << 40
"""More than any total score: nodes of a higher tier come first, whatever they score."""
TRIED: Final = -1
NOT_REPORTED: Final = 0


class Attempt(Struct, frozen=True, kw_only=True):
    """One pod's turn, and what beside it decides."""

    pod: Pod
    shape: Shape
    now: float
    nominated: str = ""
    """The node that was picked for it earlier; tried first."""
    promised: Mapping[int, tuple[Pod, ...]] = {}
    """By row: pods that its room is promised to, and that this pod has to leave it to."""
    kept_off: Rows | None = None
    """Nodes that turned away pods of this shape lately."""
    start: int = 0
    """Where the search for nodes begins, if it is not for all."""


class Chosen(Struct, frozen=True):
    decision: Decision
    looked_at: int
    fitting: int


class NoNode(Struct, frozen=True, kw_only=True):
    """Nobody takes it. Either a rule refused the pod as such, or every node has somebody who refused it."""

    nodes: int
    refused: Refused | None = None
    filtered: Filtered | None = None
    kept_off: Rows = field(default_factory=lambda: NO_ROWS)
    zones: Rows = field(default_factory=lambda: NO_ROWS)
    """Nodes on which only the engine refuses."""

    @property
    def unresolvable(self) -> Rows:
        """Nodes on which taking pods away would not help."""
        found = [rows for _, refusal, rows in self.tallies() if refusal.unresolvable]
        return np.concatenate(found) if found else np.zeros(0, np.intp)

    def tallies(self) -> list[tuple[str, Refusal, Rows]]:
        return self.filtered.tallies() if self.filtered is not None else []


NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


def choose(attempt: Attempt, profile: Profile, cluster: Cluster, rng: Randomness) -> Chosen | NoNode:
    found = filtering.filtered(attempt.pod, profile.filters, cluster.world)
    if isinstance(found, Refused):
        return NoNode(nodes=cluster.nodes, refused=found)
    filtering.respecting(found, attempt.promised)
    fitting, kept_off = _parted(found.fitting, attempt.kept_off)
    codes = cluster.engine.survey(attempt.shape)
    search = _Search(attempt, profile, cluster, codes)
    rows = fitting[codes[fitting] >= 0]
    some = _sought(rows, attempt.start, scoring.sought(cluster.nodes, profile.percentage))
    decision = search.best(some, rng) or (search.best(rows[codes[rows] >= 0], rng) if len(some) < len(rows) else None)
    if decision is not None:
        return Chosen(decision, len(found.rows), len(some))
    return NoNode(nodes=cluster.nodes, filtered=found, kept_off=kept_off, zones=fitting[codes[fitting] < 0])


class _Search(Struct, frozen=True):
    attempt: Attempt
    profile: Profile
    cluster: Cluster
    codes: Codes

    def best(self, rows: Rows, rng: Randomness) -> Decision | None:
        """The pod on the best of these rows that is certain to take it; among equals any, by chance."""
        totals = self._totals(rows)
        ranks = totals + TIER * self._tiers(rows)
        while len(rows) and (most := int(ranks.max())) >= 0:
            equals = np.flatnonzero(ranks == most)
            place = int(equals[int(rng.random() * len(equals))])
            row = int(rows[place])
            decision = self.cluster.engine.place(self.attempt.pod, self.attempt.shape, row, self.attempt.now)
            if decision is not None:
                return decision
            # It may still be a last resort, after all others.
            left = self.codes[row] >= 0 and ranks[place] >= 2 * TIER
            ranks[place] = totals[place] + TIER if left else TRIED
        return None

    def _totals(self, rows: Rows) -> Scores:
        if len(rows) <= 1:
            return np.zeros(len(rows), np.int64)
        zones = self.profile.zones_weight * self.codes[rows].astype(np.int64)
        return scoring.totals(self.attempt.pod, self.profile.scores, self.cluster.world, rows) + zones

    def _tiers(self, rows: Rows) -> NDArray[np.int64]:
        """3: nominated. 2: as scores say. 1: where it takes a search. 0: for pods that kubelets align, nodes that
        have no report, because nobody knows what happens to the pod there."""
        codes, tiers = self.codes[rows], np.full(len(rows), 2, np.int64)
        tiers[codes == LAST_RESORT] = 1
        if _is_aligned(self.attempt.shape):
            tiers[codes == NOT_REPORTED] = 0
        if self.attempt.nominated:
            tiers[rows == self.cluster.world.rows.get(self.attempt.nominated, -1)] = 3
        return tiers


def _is_aligned(shape: Shape) -> bool:
    """Whether kubelets may pin something of it: CPUs and memory of guaranteed pods, anybody's devices."""
    return shape.qos is QoS.GUARANTEED or any(map(resourcenames.is_extended, shape.totals))


def _parted(fitting: Rows, kept_off: Rows | None) -> tuple[Rows, Rows]:
    if kept_off is None or not len(kept_off):
        return fitting, NO_ROWS
    inside = np.isin(fitting, kept_off)
    return fitting[~inside], fitting[inside]


def _sought(rows: Rows, start: int, enough: int) -> Rows:
    """So many of them, in turn from attempt to attempt (kube-scheduler spec 4.3)."""
    if len(rows) <= enough:
        return rows
    first = int(np.searchsorted(rows, start))
    return np.sort(np.roll(rows, -first)[:enough])
