"""Chooses a node for one pod: filters, zones, scores, and the best node that is certain to admit the pod.

`cycle` calls `choose` once per attempt; `AttemptContext` collects what the attempt depends on beside the pod. The
extender calls `best` for the nodes that it was asked about. The engine has charged the pod to the node when either
returns one. Nothing else is written. Pure: the same cluster, pod and randomness give the same result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from msgspec import Struct, field, structs

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Codes, Decision, Randomness
from numalign.placement.rules.rule import Refusal, Rows, Scores, span
from numalign.scheduler.choose import filtering, scoring
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import Filtered, Refused
from numalign.scheduler.choose.rankcache import RankRequest
from numalign.scheduler.choose.scoring import UNRANKED, Phase, ScoreDetails
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue.nominations import ByRow, Nominations

TIER: Final = 1 << 40
"""More than any total score: nodes of a higher tier come first, whatever they score."""
TRIED: Final = -1


class Attempt(Struct, frozen=True, kw_only=True):
    """One attempt to schedule a pod, with its inputs."""

    pod: Pod
    shape: Shape
    now: float
    nominated: str = ""
    """The node that was picked for it earlier; tried first."""
    promised: Mapping[int, tuple[Pod, ...]] = {}
    """By row: pods that its room is promised to, and that this pod has to leave it to."""
    leaving: Mapping[int, tuple[str, ...]] = {}
    """By row: pods, by uid, that are about to end for those."""
    kept_off: Mapping[int, str] = {}
    """By row: nodes that the storm guard avoids, with the reason."""
    start: int = 0
    """Where the search for nodes begins, if it is not for all."""
    ranking: ScoreDetails | None = None
    """To be filled in with scores by plugin, if wanted."""


class Chosen(Struct, frozen=True):
    decision: Decision
    looked_at: int
    fitting: int


class NoNode(Struct, frozen=True, kw_only=True):
    """No node fits. Either a plugin rejected the pod as a whole, or each node was rejected by some plugin."""

    nodes: int
    refused: Refused | None = None
    filtered: Filtered | None = None
    kept_off: Mapping[int, str] = {}
    """As in the attempt: of these nodes some may be refused by a rule as well."""
    zones: Rows = field(default_factory=lambda: NO_ROWS)
    """Nodes on which only the engine refuses."""
    promised: Rows = field(default_factory=lambda: NO_ROWS)
    """Nodes that would do, but whose zones are kept for others."""
    codes: Codes | None = None
    """What the engine says of nodes, by row."""

    def code(self, row: int) -> int:
        return int(self.codes[row]) if self.codes is not None else 0

    @property
    def unresolvable(self) -> Rows:
        """Nodes on which taking pods away would not help."""
        found = [rows for _, refusal, rows in self.tallies() if refusal.unresolvable]
        return np.concatenate(found) if found else np.zeros(0, np.intp)

    def tallies(self) -> list[tuple[str, Refusal, Rows]]:
        return self.filtered.tallies() if self.filtered is not None else []


NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


def choose(attempt: Attempt, profile: Profile, cluster: Cluster, rng: Randomness) -> Chosen | NoNode:
    if attempt.kept_off and not profile.zones:
        # kube-scheduler has no storm guard.
        attempt = structs.replace(attempt, kept_off={})
    return _by_ranks(attempt, profile, cluster, rng) or _among_all(attempt, profile, cluster, rng)


def best(attempt: Attempt, profile: Profile, cluster: Cluster, rows: Rows, rng: Randomness) -> Decision | None:
    """The pod on the best of these rows, charged; None: none of them is certain to admit it. The caller has applied
    the other filters."""
    search = _Search(attempt, profile, cluster, filtering.survey(profile, cluster.engine, attempt.shape, rows))
    return search.best(rows[search.codes[rows] >= 0], rng)


def _by_ranks(attempt: Attempt, profile: Profile, cluster: Cluster, rng: Randomness) -> Chosen | None:
    is_special = attempt.nominated or attempt.promised or attempt.kept_off or attempt.ranking is not None
    nodes = cluster.nodes
    if is_special or not profile.zones or scoring.sought(nodes, profile.percentage) < nodes:
        return None
    found = cluster.ranks.placed(RankRequest(attempt.pod, attempt.shape, profile, attempt.now), rng)
    return Chosen(found.decision, nodes, found.fitting) if found is not None else None


def _among_all(attempt: Attempt, profile: Profile, cluster: Cluster, rng: Randomness) -> Chosen | NoNode:
    ranking = attempt.ranking or UNRANKED
    found = filtering.filtered(attempt.pod, profile.filters, cluster.world)
    ranking.ended(Phase.FILTER)
    if isinstance(found, Refused):
        return NoNode(nodes=cluster.nodes, refused=found)
    codes = filtering.survey(profile, cluster.engine, attempt.shape, found.fitting)
    search = _Search(attempt, profile, cluster, codes)
    nominated = search.on_nominated(found, rng)
    if nominated is not None:
        return nominated
    found = filtering.respecting(found, attempt.promised, codes)
    fitting = _without(found.fitting, attempt.kept_off)
    ranking.ended(Phase.ZONES)
    admitting = codes[span(fitting)] >= 0
    rows = fitting if admitting.all() else fitting[admitting]
    some, looked_at = _sought(rows, found.rows, attempt.start, scoring.sought(cluster.nodes, profile.percentage))
    decision = search.best(some, rng) or (search.best(rows[codes[rows] >= 0], rng) if len(some) < len(rows) else None)
    ranking.ended(Phase.PLACE)
    if decision is not None:
        return Chosen(decision, looked_at, len(some))
    return NoNode(
        nodes=cluster.nodes,
        filtered=found,
        kept_off=attempt.kept_off,
        zones=fitting[codes[span(fitting)] < 0],
        promised=np.array([row for row in search.kept if codes[row] >= 0], np.intp),
        codes=codes,
    )


class _Search(Struct, frozen=True):
    attempt: Attempt
    profile: Profile
    cluster: Cluster
    codes: Codes
    kept: dict[int, None] = field(default_factory=dict)
    """Rows that turned out to be kept for others."""

    def on_nominated(self, found: Filtered, rng: Randomness) -> Chosen | None:
        """The node that was picked for the pod earlier is tried first, and alone (kube-scheduler spec 4.4)."""
        row = self.cluster.world.rows.get(self.attempt.nominated, -1)
        if row < 0 or not found.has(row) or self.codes[row] < 0 or row in self.attempt.kept_off:
            return None
        if row in self.attempt.promised:
            found = filtering.respecting(found, {row: self.attempt.promised[row]})
        decision = self.best(np.array([row], np.intp), rng) if found.has(row) else None
        return Chosen(decision, len(found.rows), 1) if decision is not None else None

    def best(self, rows: Rows, rng: Randomness) -> Decision | None:
        """The pod on the best of these rows that is certain to take it; among equals any, by chance."""
        if len(rows) == 1:
            return self._on(rows.item(0), rng)
        ranks = self._ranks(rows)
        while len(rows) and (most := int(ranks.max())) >= 0:
            equals = np.flatnonzero(ranks == most)
            place = int(equals[int(rng.random() * len(equals))])
            row = int(rows[place])
            decision = self._placed(row)
            if decision is not None:
                return decision
            if row in self.kept:
                ranks[place] = TRIED
                continue
            # It may still be a last resort, after all others.
            left = self.codes[row] >= 0 and ranks[place] >= 2 * TIER
            ranks[place] = ranks[place] % TIER + TIER if left else TRIED
        return None

    def _on(self, row: int, rng: Randomness) -> Decision | None:
        """The same where there is one row only, as for pods of DaemonSets: without arrays."""
        tier = self._tiers().item(self.codes.item(row))
        nominated = self.cluster.world.rows.get(self.attempt.nominated, -1) == row
        for _ in range(2 if nominated or tier >= scoring.BY_SCORE else 1):
            rng.random()
            decision = self._placed(row)
            if decision is not None or row in self.kept or self.codes[row] < 0:
                return decision
        return None

    def _placed(self, row: int) -> Decision | None:
        attempt, profile, engine = self.attempt, self.profile, self.cluster.engine
        others = attempt.promised.get(row)
        if others and not filtering.whatif(profile, engine, attempt.pod, attempt.shape).leaves_room(
            row, attempt.leaving.get(row, ()), others
        ):
            self.kept[row] = None
            return None
        return filtering.place(profile, engine, attempt.pod, attempt.shape, row, attempt.now)

    def _ranks(self, rows: Rows) -> Scores:
        """By row the total score, and before that the tier: certainty of admission, or that the node was nominated."""
        codes, tiers = self.codes[span(rows)], self._tiers()
        if len(rows) <= 1:
            return TIER * tiers.take(codes)
        ranking, aligned = self.attempt.ranking or UNRANKED, scoring.is_aligned(self.attempt.shape)
        zones = filtering.zone_scores(self.profile, self.cluster.engine, aligned=aligned)
        parts = ranking.begun()
        ranks = scoring.totals(self.attempt.pod, self.profile.scores, self.cluster.world, rows, parts)
        if parts is not None:
            ranking.saw(rows, ranks + zones.take(codes), zones.take(codes))
        ranks += (zones + TIER * tiers).take(codes)
        if self.attempt.nominated:
            nominated = rows == self.cluster.world.rows.get(self.attempt.nominated, -1)
            ranks[nominated] = ranks[nominated] % TIER + TIER * scoring.NOMINATED
        return ranks

    def _tiers(self) -> Scores:
        aligned = scoring.is_aligned(self.attempt.shape)
        return filtering.certainties(self.profile, self.cluster.engine, aligned=aligned)


def _without(fitting: Rows, kept_off: Mapping[int, str]) -> Rows:
    return fitting[~np.isin(fitting, np.fromiter(kept_off, np.intp))] if kept_off else fitting


def _sought(rows: Rows, nodes: Rows, start: int, enough: int) -> tuple[Rows, int]:
    """So many of `rows`, in turn from attempt to attempt, and how many `nodes` had to be looked at for them from the
    one at `start` on (kube-scheduler spec 4.3)."""
    if len(rows) <= enough:
        return rows, len(nodes)
    places = np.searchsorted(nodes, rows)
    some = np.roll(rows, -int(np.searchsorted(places, start)))[:enough]
    last = int(np.searchsorted(nodes, some[-1]))
    return np.sort(some), (last - start) % len(nodes) + 1


NOTHING: Final[Mapping[int, Any]] = MappingProxyType({})


class AttemptContext(Struct, frozen=True):
    cluster: Cluster
    nominations: Nominations
    rejections: StormGuard

    def attempt(self, pod: Pod, shape: Shape, now: float, start: int, ranking: ScoreDetails | None = None) -> Attempt:
        """`start`: where the search for nodes begins, if it is not for all."""
        world, nominations = self.cluster.world, self.nominations
        promised: Mapping[int, tuple[Pod, ...]] = NOTHING
        leaving: Mapping[int, tuple[str, ...]] = NOTHING
        if len(nominations):
            promised = ByRow(nominations, world, lambda node: nominations.above(node, pod))
            leaving = ByRow(nominations, world, nominations.leaving)
        return Attempt(
            pod=pod,
            shape=shape,
            now=now,
            nominated=nominations.node_of(pod.metadata.uid),
            promised=promised,
            leaving=leaving,
            kept_off=self.rejections.kept_off(pod, shape.number, world.rows, now),
            start=start % max(1, self.cluster.nodes),
            ranking=ranking,
        )
