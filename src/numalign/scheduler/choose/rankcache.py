"""Caches the rank of every node for each kind of pods, and picks the best node from it.

`choose` tries this cache before it runs all filters and scores. Most plugins judge a node by that node alone, and
placing a pod changes one node: only the ranks of changed nodes are computed again, found through the change logs of
engine and totals. Plugins that look at other nodes (spreading, affinity, preferences) are computed for all nodes and
added. What filters and scores say of the nodes' descriptions is computed once for pods of all sizes. The result equals
that of the full computation, including the random choice among equal nodes. Pods that fit nowhere go through the full
computation. A rank is the certainty of admission and the total score in one number. Pods are of one kind if informers
have made their parts one object (`api.decode.sharing`)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, Generic, TypeVar

import numpy as np
from msgspec import Struct

from numalign.api.caches import BoundedCache, LruCache, StampedCache
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod, Volume
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Codes, Decision, Randomness
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.nodeamounts import NEVER, OUT, AmountRanks
from numalign.placement.rules.rowclasses import Small
from numalign.placement.rules.rule import FITS, Refusal, Rows, Scores
from numalign.placement.rules.totals import ByAmounts
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.scheduler.choose import scoring
from numalign.scheduler.profiles import Around, Profile, Scored


class BestRanks:
    def __init__(self, ranks: Codes) -> None:
        """By row, `OUT` or a rank of 0 or more. The array stays the caller's, who tells of every change."""
        self._ranks = ranks
        found, counts = np.unique(ranks[ranks != OUT], return_counts=True)
        self._counts: dict[int, int] = dict(zip(found.tolist(), counts.tolist(), strict=True))
        self._rows: dict[int, list[int]] = {}
        self._best = [-rank for rank in self._counts]
        """A heap of all ranks, the highest first; some may have no rows any more."""
        heapify(self._best)

    def move(self, row: int, before: int, rank: int) -> None:
        """One row's rank is another than before, as the array says by now."""
        counts, rows = self._counts, self._rows
        if before != OUT:
            counts[before] -= 1
            if before in rows:
                equals = rows[before]
                del equals[bisect_left(equals, row)]
        if rank == OUT:
            return
        if rank in rows:
            insort(rows[rank], row)
        if rank in counts:
            counts[rank] += 1
        else:
            counts[rank] = 1
            heappush(self._best, -rank)

    @property
    def first(self) -> Sequence[int]:
        """The rows of the best rank, in their order; none: there is no row to pick."""
        while self._best:
            rank = -self._best[0]
            if self._counts[rank]:
                found = self._rows.get(rank)
                if found is None:
                    found = self._rows[rank] = np.flatnonzero(self._ranks == rank).tolist()
                return found
            del self._counts[rank]
            self._rows.pop(rank, None)
            heappop(self._best)
        return ()


TIER_BITS: Final = 24
MOST_KNOWN: Final = 8192
FEW: Final = 64
"""Changes up to which one row after the other is quicker than arrays over them."""
SEVERAL: Final = 3
"""Rows from which their amounts are evaluated together."""
UNKNOWN: Final = -2
CODES: Final = 256
"""Codes as unsigned bytes."""

Weighted = tuple[int, ByAmounts]


class Described(Struct, frozen=True, kw_only=True):
    """What rules say that look at the description of nodes, row by row: the same for pods of all sizes."""

    base: Small
    """What this adds to ranks; `NEVER`: the row does not take the pods."""
    by_code: Small
    """What zones add to the rank of a row, by its code as an unsigned byte."""
    relative: Sequence[Scored]
    """Scores that do not look around, but are normalised over all nodes that would do."""


class BySize(Struct, frozen=True, kw_only=True):
    """What follows from the amounts that a pod asks for, and those of nodes."""

    filters: Sequence[ByAmounts]
    scores: Sequence[Weighted]


class NodeRanks:
    def __init__(
        self, described: Described, by_size: BySize, shape: Shape, engine: Engine, world: ClusterState
    ) -> None:
        self._shape, self._engine, self._totals = shape, engine, world.totals
        self._log, self._likes = world.totals.log, world.totals.likes
        self._base, self._by_code = described.base, described.by_code
        self._filters, self._scores = by_size.filters, by_size.scores
        self._terms = AmountRanks(
            tuple([each.terms for each in by_size.filters]),
            tuple([(weight, each.terms) for weight, each in by_size.scores]),
        )
        self._ranks: Small = np.empty(world.capacity, np.int32)
        """`OUT`: the node does not take the pod."""
        self._ranks.fill(OUT)
        self._podium: BestRanks | None = None
        """Made when a few rows have changed: a kind may have one pod only, or come so seldom that all rows do."""
        self._highest = UNKNOWN
        """The best rank, while the ranks are those of the last look at all rows."""
        self._table: VerdictTable | None = None
        """The engine's answers, as they were found last; None: never. With it, how far changes are known."""
        self._turned_down = self._judged = self._seen = 0
        self.fitting = 0
        # Single numbers are read and written here: views of the same arrays are quicker at that.
        self._base_of = self._base.data
        self._rank_of, self._of_code = self._ranks.data, self._by_code.data
        self._known: BoundedCache[int, int] = BoundedCache(MOST_KNOWN)
        """By likeness, what amounts add to a rank: nodes of one kind fill up alike. `NEVER`: they do not do."""

    def placed(self, pod: Pod, now: float, rng: Randomness) -> Decision | None:
        """On the best node that is certain to take it; None: on none."""
        self.refresh()
        row = self._pick(rng)
        if row is None:
            return None
        decision = self._engine.place(pod, self._shape, row, now)
        if decision is not None:
            return decision
        rows = np.flatnonzero(self.open_rows())
        totals = self.at(rows)
        self._demote(int(np.searchsorted(rows, row)), row, totals)
        return self.placed_among(pod, now, (rows, totals), rng)

    def _pick(self, rng: Randomness) -> int | None:
        """Any row of the best rank."""
        if self._highest == OUT:
            return None
        if self._highest != UNKNOWN:
            equals = np.flatnonzero(self._ranks == self._highest)
            return equals.item(int(rng.random() * len(equals)))
        if self._podium is None:
            self._podium = BestRanks(self._ranks)
        best = self._podium.first
        return best[int(rng.random() * len(best))] if best else None

    def placed_among(self, pod: Pod, now: float, ranked: tuple[Rows, Scores], rng: Randomness) -> Decision | None:
        """The same on these rows by these ranks, because others have had their say."""
        rows, totals = ranked
        while len(rows) and (most := totals.max()) >= 0:
            equals = np.flatnonzero(totals == most)
            place = equals.item(int(rng.random() * len(equals)))
            decision = self._engine.place(pod, self._shape, rows.item(place), now)
            if decision is not None:
                return decision
            self._demote(place, rows.item(place), totals)
        return None

    def open_rows(self) -> Flags:
        """A new array: whether the row takes the pod, as far as this knows."""
        return np.not_equal(self._ranks, OUT)

    def at(self, rows: Rows) -> Scores:
        return self._ranks[rows].astype(np.int64)

    def refresh(self) -> None:
        """Look at rows that changed."""
        table = self._engine.follow(self._shape)
        assert table is not None, "ranks are made for flavours that keep tables"
        few = self._few(table)
        if few is None:
            self._look_at_all(table.codes)
        elif few:
            self._look_at(few, table.codes)
            self._highest = UNKNOWN
        self._table, self._turned_down = table, table.turned_down
        self._judged, self._seen = table.seen, self._log.generation

    def _few(self, table: VerdictTable) -> set[int] | None:
        """Rows that changed, where these are only a few, and the logs tell."""
        if table is not self._table:
            return None
        turned_down = table.turned_down_since(self._turned_down)
        judged = self._engine.changes.few_since(self._judged, FEW)
        counted = self._log.few_since(self._seen, FEW)
        if judged is None or counted is None or turned_down is None:
            return None
        rows = {*judged, *counted, *turned_down}
        # Rows beyond have a report and no node.
        beyond = self._engine.height > len(self._ranks)
        return {row for row in rows if row < len(self._ranks)} if beyond else rows

    def _demote(self, place: int, row: int, totals: Scores) -> None:
        """The row did not take the pod, for the engine has looked closer; it may still be a last resort, after all
        others."""
        left = self._engine.survey(self._shape).item(row) >= 0 and totals[place] >= scoring.BY_SCORE << TIER_BITS
        totals[place] = totals[place] - (1 << TIER_BITS) if left else OUT

    def _look_at_all(self, judged: Codes) -> None:
        rows = min(len(self._ranks), self._engine.height)
        codes, ranks = judged[:rows].view(np.uint8), self._ranks[:rows]
        found = self._totals.rank(self._terms, self._base, codes, self._by_code, ranks)
        self._podium, self._highest, self.fitting = None, found.rank, found.fitting

    def _look_at(self, rows: Collection[int], judged: Codes) -> None:
        ranks, podium = self._rank_of, self._podium
        base, likes, known, of_code = self._base_of, self._likes, self._known, self._of_code
        if len(rows) >= SEVERAL:
            self._remember({likes[row]: row for row in rows if likes[row] not in known and base[row] >= 0})
        for row in rows:
            code = judged.item(row)
            before, rank = ranks[row], OUT
            if code >= 0 and base[row] >= 0:
                amounts = known.get(likes[row])
                if amounts is None:
                    amounts = self._remembered(row)
                # Scores of absurd amounts may be negative.
                rank = max(OUT, amounts + base[row] + of_code[code])
            if rank != before:
                self.fitting += (rank != OUT) - (before != OUT)
                ranks[row] = rank
                if podium is not None:
                    podium.move(row, before, rank)

    def _remembered(self, row: int) -> int:
        """What amounts add to the rank of this row and its like, worked out."""
        return self._known.keep(self._likes[row], self._by_amounts(row))

    def _remember(self, rows: Mapping[int, int]) -> None:
        """The same for one row of each likeness, quicker than one after the other."""
        if not rows:
            return
        found = self._totals.ranked(self._terms, np.array(list(rows.values())))
        for like, amounts in zip(rows, found.tolist(), strict=True):
            self._known.keep(like, amounts)

    def _by_amounts(self, row: int) -> int:
        for each in self._filters:
            if each.row(row) != FITS:
                return NEVER
        return sum([weight * each.row(row) for weight, each in self._scores])


T = TypeVar("T")
Parts = tuple[object, ...]

OF_SPEC: Final = attrgetter(
    "containers",
    "init_containers",
    "affinity",
    "tolerations",
    "node_selector",
    "node_name",
    "topology_spread_constraints",
    "resource_claims",
    "host_network",
    "host_users",
)
OF_META: Final = attrgetter("labels", "owner_references", "namespace")
NO_VOLUMES: Final[tuple[Volume, ...]] = ()


class PodKinds(Generic[T]):
    """The latest finding about pods of each kind."""

    def __init__(self, most: int) -> None:
        self._known: BoundedCache[int, tuple[Parts, T]] = BoundedCache(most)
        """By the identity of their containers, which are kept with it, so that nothing else gets it."""

    def find(self, parts: Parts) -> T | None:
        known = self._known.get(id(parts[0]))
        # Parts that are one object are not looked into.
        return known[1] if known is not None and known[0] == parts else None

    def keep(self, parts: Parts, finding: T) -> None:
        self._known.keep(id(parts[0]), (parts, finding))


def kind_parts(pod: Pod) -> Parts:
    """All that rules read of a pod that waits, but for what it asks for beside its containers; containers first."""
    spec = pod.spec
    volumes = spec.volumes if spec.volumes and _decide(spec.volumes) else NO_VOLUMES
    return (*OF_SPEC(spec), *OF_META(pod.metadata), volumes)


def _decide(volumes: Iterable[Volume]) -> bool:
    """Whether one of them is more than files of the pod's own: those have names of their own, too."""
    return any(volume != Volume(name=volume.name) for volume in volumes)


MOST_KINDS: Final = 64
MOST_DESCRIBED: Final = 64
LARGEST_SCORE: Final = 256
"""Of one rule or the zones, before weights: more than any."""

Stamp = tuple[int, int, int]


class RankRequest(Struct, frozen=True):
    pod: Pod
    shape: Shape
    profile: Profile
    now: float


class RankedPlacement(Struct, frozen=True):
    decision: Decision
    fitting: int
    """How many nodes would do."""


class KindRanks(Struct, frozen=True):
    """As long as nodes are described as they were."""

    stamp: Stamp
    ranks: NodeRanks | None
    """None: pods of the kind always go the long way."""
    relative: Sequence[Scored] = ()
    """As in `Described`."""


class KnownKind(Struct, frozen=True):
    """What is known of pods that share their parts, as long as their surroundings are as they were."""

    shape: Shape
    profile: Profile
    surroundings: int
    around: Sequence[Around]
    """Rules that have something to say about them."""
    reads: Hashable
    """What other rules read of them, but for their size."""
    standing: list[KindRanks]
    """One, or none so far."""

    def holds(self, asked: RankRequest, surroundings: int) -> bool:
        return self.surroundings == surroundings and self.shape is asked.shape and self.profile is asked.profile


class RankCache:
    def __init__(self, engine: Engine, world: ClusterState) -> None:
        self._engine, self._world = engine, world
        self._known: LruCache[Hashable, list[KindRanks]] = LruCache(MOST_KINDS)
        self._described: StampedCache[Hashable, Described | None] = StampedCache(MOST_DESCRIBED)
        """By all that rules which do not look around read of a pod, but for its size; None: no ranks are kept."""
        self._familiar: PodKinds[KnownKind] = PodKinds(MOST_KINDS)

    def placed(self, asked: RankRequest, rng: Randomness) -> RankedPlacement | None:
        """The pod on the best node, charged; None: it has to go the long way."""
        familiar = self._recognised(asked)
        standing = self._standing(asked, familiar)
        if standing.ranks is None:
            return None
        if familiar.around or standing.relative:
            return self._placed_among(asked, standing, familiar.around, rng)
        decision = standing.ranks.placed(asked.pod, asked.now, rng)
        return RankedPlacement(decision, standing.ranks.fitting) if decision is not None else None

    def _placed_among(
        self, asked: RankRequest, standing: KindRanks, around: Sequence[Around], rng: Randomness
    ) -> RankedPlacement | None:
        ranks = standing.ranks
        assert ranks is not None
        ranks.refresh()
        rows = self._fitting(asked.pod, ranks, around)
        if rows is None:
            return None
        scored = [*standing.relative, *(each.scored for each in around if each.scored is not None)]
        totals = ranks.at(rows) + self._added(asked.pod, rows, scored)
        decision = ranks.placed_among(asked.pod, asked.now, (rows, totals), rng)
        return RankedPlacement(decision, len(rows)) if decision is not None else None

    def _fitting(self, pod: Pod, ranks: NodeRanks, around: Sequence[Around]) -> Rows | None:
        fits = ranks.open_rows()
        for each in around:
            prepared = each.filter.prepare(pod, self._world) if each.filter is not None else None
            if each.filter is None or prepared is None:
                continue
            if isinstance(prepared, Refusal) or prepared.only is not None:
                return None
            fits &= each.filter.filter(prepared) == FITS
        return np.flatnonzero(fits)

    def _added(self, pod: Pod, rows: Rows, scored: Sequence[Scored]) -> Scores:
        total = np.zeros(len(rows), np.int64)
        for each in scored if len(rows) > 1 else ():
            prepared = each.rule.prepare_score(pod, self._world, rows)
            if prepared is not None:
                total += each.weight * each.rule.normalized(prepared, each.rule.score(prepared, rows))
        return total

    # What is kept

    def _recognised(self, asked: RankRequest) -> KnownKind:
        pod, profile = asked.pod, asked.profile
        parts, surroundings = kind_parts(pod), 0
        for each in profile.surrounded:
            surroundings += each.surroundings
        found = self._familiar.find(parts)
        if found is not None and found.holds(asked, surroundings):
            return found
        around = [each for each in profile.around if each.concerns(pod)]
        reads = _read_of(asked)
        known = self._known.get((asked.shape.number, reads), list)
        found = KnownKind(asked.shape, profile, surroundings, around, reads, known)
        self._familiar.keep(parts, found)
        return found

    def _standing(self, asked: RankRequest, familiar: KnownKind) -> KindRanks:
        world, holder = self._world, familiar.standing
        stamp = world.description, world.capacity, len(world.totals.columns)
        if not holder or holder[0].stamp != stamp:
            holder[:] = [self._made(asked, familiar.reads, stamp)]
        return holder[0]

    def _made(self, asked: RankRequest, reads: Hashable, stamp: Stamp) -> KindRanks:
        if self._engine.follow(asked.shape) is None or requests.is_resized(asked.pod):
            return KindRanks(stamp, None)
        described = self._described.get(reads, stamp[:2], lambda: self._describe(asked))
        by_size = self._by_size(asked.pod, asked.profile) if described is not None else None
        if described is None or by_size is None:
            return KindRanks(stamp, None)
        ranks = NodeRanks(described, by_size, asked.shape, self._engine, self._world)
        return KindRanks(stamp, ranks, described.relative)

    def _describe(self, asked: RankRequest) -> Described | None:
        pod, profile, world = asked.pod, asked.profile, self._world
        weights = profile.zones_weight + sum(scored.weight for scored in profile.scores)
        if weights * LARGEST_SCORE >= 1 << TIER_BITS:
            return None
        takes = world.present.copy()
        for rule, alone in profile.alone:
            prepared = rule.prepare(pod, world)
            if isinstance(prepared, Refusal) or (prepared is not None and prepared.only is not None):
                return None
            if prepared is not None:
                takes &= alone.filter_alone(prepared) == FITS
        base, relative = np.zeros(world.capacity, np.int32), list[Scored]()
        for scored, alone_score in profile.standing:
            prepared = scored.rule.prepare_score(pod, world, world.node_rows)
            score = alone_score.score_alone(prepared) if alone_score is not None and prepared is not None else None
            if score is not None:
                base += np.int32(scored.weight) * score.astype(np.int32, copy=False)
            elif prepared is not None:
                relative.append(scored)
        base[~takes] = NEVER
        return Described(base=base, by_code=self._by_code(asked), relative=relative)

    def _by_code(self, asked: RankRequest) -> Small:
        profile, engine, aligned = asked.profile, self._engine, scoring.is_aligned(asked.shape)
        found = np.full(CODES, NEVER, np.int32)
        ranks = engine.zone_scores(profile.zones_weight, aligned=aligned)
        found[: len(ranks)] = ranks + (engine.certainties(aligned=aligned) << TIER_BITS)
        return found

    def _by_size(self, pod: Pod, profile: Profile) -> BySize | None:
        world, filters, scores = self._world, list[ByAmounts](), list[Weighted]()
        for rule, fits in profile.amounts_filters:
            prepared = rule.prepare(pod, world)
            if isinstance(prepared, Refusal) or (prepared is not None and prepared.only is not None):
                return None
            if prepared is not None:
                filters.append(fits.filter_amounts(prepared))
        for scored, counts in profile.amounts_scores:
            prepared = scored.rule.prepare_score(pod, world, world.node_rows)
            if prepared is not None:
                scores.append((scored.weight, counts.score_amounts(prepared)))
        return BySize(filters=filters, scores=scores)


def _read_of(asked: RankRequest) -> Hashable:
    """All that rules which do not look around read of a pod, beside the amounts that it asks for."""
    spec = asked.pod.spec
    return (
        asked.profile.name,
        scoring.is_aligned(asked.shape),
        spec.tolerations,
        tuple(spec.node_selector.items()) if spec.node_selector else (),
        spec.affinity.node_affinity if spec.affinity is not None else None,
        tuple([container.image for container in spec.containers]),
        tuple([container.image for container in spec.init_containers]) if spec.init_containers else (),
        tuple([volume.image for volume in spec.volumes if volume.image is not None]) if spec.volumes else (),
    )
