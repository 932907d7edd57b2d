"""Caches the rank of every node for each kind of pods, and picks the best node from it.

`choose` tries this cache before it runs all filters and scores. Most plugins judge a node by that node alone, and
placing a pod changes one node: only the ranks of changed nodes are computed again, found through the change logs of
engine and totals. Plugins that look at other nodes (spreading, affinity, preferences) are computed for all nodes and
added. The result equals that of the full computation, including the random choice among equal nodes. Pods of a new
kind, and pods that fit nowhere, go through the full computation. A rank is the certainty of admission and the total
score in one number. Pods are of one kind if informers have made their parts one object (`api.decode.sharing`)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import BoundedCache, LruCache
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod, Volume
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Codes, Decision, Randomness
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.rowclasses import Follows
from numalign.placement.rules.rule import FITS, Fixed, Refusal, Rows, Scores
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.scheduler.choose import scoring
from numalign.scheduler.profiles import Around, Profile, Scored

OUT: Final = -1
"""The rank of a row that is none to pick."""


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
MANY: Final = 256
"""Changed ranks from which a new podium is quicker than moving rows on the old one."""

Weighted = tuple[int, Follows]


class RankTerms(Struct, frozen=True, kw_only=True):
    """What rules say row by row; `aligned`: kubelets pin something of the pod."""

    filters: Sequence[Follows]
    scores: Sequence[Weighted]
    zones_weight: int
    aligned: bool


class NodeRanks:
    def __init__(self, terms: RankTerms, shape: Shape, engine: Engine, world: ClusterState) -> None:
        self._terms, self._shape, self._engine, self._log = terms, shape, engine, world.totals.log
        fixed = [each.values != FITS for each in terms.filters if isinstance(each, Fixed)]
        self._open: Flags = ~np.logical_or.reduce(fixed)
        """Rows that take the pod as far as the node's description goes."""
        self._base: Scores = np.zeros(world.capacity, np.int64)
        for weight, each in terms.scores:
            self._base += weight * each.values if isinstance(each, Fixed) else 0
        self._filters = [each for each in terms.filters if not isinstance(each, Fixed)]
        self._scores = [(weight, each) for weight, each in terms.scores if not isinstance(each, Fixed)]
        self._ranks: Codes = np.full(world.capacity, OUT, np.int32)
        """`OUT`: the node does not take the pod."""
        self._codes: Codes = np.full(world.capacity, OUT, np.int32)
        """The engine's, as far as ranks know them."""
        self._podium: BestRanks | None = None
        """Made at the first pick."""
        self._table: VerdictTable | None = None
        """The engine's answers, as they were found last; None: never. With it, how far changes are known."""
        self._turned_down = self._judged = self._seen = 0
        self.fitting = 0
        # Single numbers are read and written here: views of the same arrays are quicker at that.
        self._is_open, self._base_of = self._open.data, self._base.data
        self._rank_of, self._code_of = self._ranks.data, self._codes.data
        self._likes = world.totals.likes
        self._known: BoundedCache[int, int] = BoundedCache(MOST_KNOWN)
        """By likeness, what amounts add to a rank: nodes of one kind fill up alike. `OUT`: they do not do."""
        aligned = terms.aligned
        zones = engine.zone_scores(terms.zones_weight, aligned=aligned)
        self._by_score = zones + (engine.certainties(aligned=aligned) << TIER_BITS)
        """What zones add."""
        self._of_zones: list[int] = self._by_score.tolist()

    def placed(self, pod: Pod, now: float, rng: Randomness) -> Decision | None:
        """On the best node that is certain to take it; None: on none."""
        self.refresh()
        if self._podium is None:
            self._podium = BestRanks(self._ranks)
        best = self._podium.first
        if not best:
            return None
        row = best[int(rng.random() * len(best))]
        decision = self._engine.place(pod, self._shape, row, now)
        if decision is not None:
            return decision
        rows = np.flatnonzero(self.open_rows())
        totals = self.at(rows)
        self._demote(int(np.searchsorted(rows, row)), row, totals)
        return self.placed_among(pod, now, (rows, totals), rng)

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
            self._look_at_many(table.codes)
        else:
            self._look_at(few, table.codes)
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
        beyond = self._engine.height > len(self._is_open)
        return {row for row in rows if row < len(self._is_open)} if beyond else rows

    def _demote(self, place: int, row: int, totals: Scores) -> None:
        """The row did not take the pod, for the engine has looked closer; it may still be a last resort, after all
        others."""
        left = self._engine.survey(self._shape).item(row) >= 0 and totals[place] >= scoring.BY_SCORE << TIER_BITS
        totals[place] = totals[place] - (1 << TIER_BITS) if left else OUT

    def _look_at_many(self, judged: Codes) -> None:
        codes = judged[: min(len(self._codes), self._engine.height)]
        differing: Rows = np.flatnonzero(codes != self._codes[: len(codes)])
        self._codes[differing] = codes[differing]
        changed = self._log.since(self._seen) if self._table is not None else None
        rows = np.flatnonzero(self._open) if changed is None else np.union1d(changed, differing).astype(np.intp)
        rows = rows[self._open[rows]]
        ranks = self._ranks_of(rows)
        other = ranks != self._ranks[rows]
        self._move(rows[other], ranks[other])

    def _move(self, rows: Rows, ranks: NDArray[np.int64]) -> None:
        before, self._ranks[rows] = self._ranks[rows].tolist(), ranks
        if len(rows) > MANY:
            self._podium = None
        elif self._podium is not None:
            for each in zip(rows.tolist(), before, ranks.tolist(), strict=True):
                self._podium.move(*each)
        self.fitting += int(np.count_nonzero(ranks != OUT)) - (len(before) - before.count(OUT))

    def _look_at(self, rows: Collection[int], judged: Codes) -> None:
        ranks, codes, podium = self._rank_of, self._code_of, self._podium
        is_open, base, likes, known, of_zones = self._is_open, self._base_of, self._likes, self._known, self._of_zones
        if len(rows) >= SEVERAL:
            self._remember({likes[row]: row for row in rows if likes[row] not in known and is_open[row]})
        for row in rows:
            codes[row] = code = judged.item(row)
            before, rank = ranks[row], OUT
            if code >= 0 and is_open[row]:
                amounts = known.get(likes[row])
                if amounts is None:
                    amounts = self._remembered(row)
                if amounts != OUT:
                    rank = amounts + base[row] + of_zones[code]
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
        for like, amounts in zip(rows, self._amounts_of(np.array(list(rows.values()))).tolist(), strict=True):
            self._known.keep(like, amounts)

    def _by_amounts(self, row: int) -> int:
        for each in self._filters:
            if each.row(row) != FITS:
                return OUT
        return sum([weight * each.row(row) for weight, each in self._scores])

    def _ranks_of(self, rows: Rows) -> NDArray[np.int64]:
        """The same as `_look_at` for many rows, all of them open."""
        codes, amounts = self._codes[rows], self._amounts_of(rows)
        # What is added to rows that do not take the pod does not count.
        total = amounts + self._base[rows] + self._by_score.take(codes, mode="clip")
        return np.where((codes >= 0) & (amounts != OUT), total, OUT)

    def _amounts_of(self, rows: Rows) -> NDArray[np.int64]:
        """What amounts add to the ranks of these rows; `OUT`: they do not do."""
        total = np.zeros(len(rows), np.int64)
        for weight, score in self._scores:
            total += np.int64(weight) * score.rows(rows)
        for each in self._filters:
            total[each.rows(rows) != FITS] = OUT
        return total


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
MOST_MET: Final = 1024
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
    """Scores of rules that do not look around, but are normalised over all nodes that would do."""


class KnownKind(Struct, frozen=True):
    """What is known of pods that share their parts, as long as their surroundings are as they were."""

    shape: Shape
    profile: Profile
    surroundings: int
    around: Sequence[Around]
    """Rules that have something to say about them."""
    standing: list[KindRanks]
    """One, or none so far."""

    def holds(self, asked: RankRequest, surroundings: int) -> bool:
        return self.surroundings == surroundings and self.shape is asked.shape and self.profile is asked.profile


class RankCache:
    def __init__(self, engine: Engine, world: ClusterState) -> None:
        self._engine, self._world = engine, world
        self._known: LruCache[Hashable, list[KindRanks]] = LruCache(MOST_KINDS)
        self._met: LruCache[Hashable, list[bool]] = LruCache(MOST_MET)
        self._familiar: PodKinds[KnownKind] = PodKinds(MOST_KINDS)

    def placed(self, asked: RankRequest, rng: Randomness) -> RankedPlacement | None:
        """The pod on the best node, charged; None: it has to go the long way."""
        familiar = self._recognised(asked)
        standing = self._standing(asked, familiar.standing) if familiar is not None else None
        if familiar is None or standing is None or standing.ranks is None:
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

    def _recognised(self, asked: RankRequest) -> KnownKind | None:
        """None: pods of its kind were not met before."""
        pod, profile = asked.pod, asked.profile
        parts, surroundings = kind_parts(pod), 0
        for each in profile.surrounded:
            surroundings += each.surroundings
        found = self._familiar.find(parts)
        if found is not None and found.holds(asked, surroundings):
            return found
        kind = _kind(asked)
        if self._is_new(kind):
            return None
        around = [each for each in profile.around if each.concerns(pod)]
        found = KnownKind(asked.shape, profile, surroundings, around, self._known.get(kind, list))
        self._familiar.keep(parts, found)
        return found

    def _standing(self, asked: RankRequest, holder: list[KindRanks]) -> KindRanks:
        world = self._world
        stamp = world.description, world.capacity, len(world.totals.columns)
        if not holder or holder[0].stamp != stamp:
            holder[:] = [self._made(asked, stamp)]
        return holder[0]

    def _is_new(self, kind: Hashable) -> bool:
        met = self._met.get(kind, list)
        if met:
            return False
        met.append(True)
        return True

    def _made(self, asked: RankRequest, stamp: Stamp) -> KindRanks:
        profile = asked.profile
        weights = profile.zones_weight + sum(scored.weight for scored in profile.scores)
        filters = self._filters(asked.pod, profile)
        if self._engine.follow(asked.shape) is None:
            return KindRanks(stamp, None)
        if filters is None or weights * LARGEST_SCORE >= 1 << TIER_BITS or requests.is_resized(asked.pod):
            return KindRanks(stamp, None)
        relative: list[Scored] = []
        scores = list(self._scores(asked.pod, profile, relative))
        aligned = scoring.is_aligned(asked.shape)
        terms = RankTerms(filters=filters, scores=scores, zones_weight=profile.zones_weight, aligned=aligned)
        return KindRanks(stamp, NodeRanks(terms, asked.shape, self._engine, self._world), relative)

    def _filters(self, pod: Pod, profile: Profile) -> list[Follows] | None:
        found: list[Follows] = [Fixed((~self._world.present).astype(np.int32))]
        for rule, alone in profile.alone:
            prepared = rule.prepare(pod, self._world)
            if isinstance(prepared, Refusal) or (prepared is not None and prepared.only is not None):
                return None
            if prepared is not None:
                found.append(alone.filter_alone(prepared))
        return found

    def _scores(self, pod: Pod, profile: Profile, relative: list[Scored]) -> Iterator[tuple[int, Follows]]:
        """Those that are relative to other nodes are put aside."""
        rows = self._world.node_rows
        for scored, alone in profile.standing:
            prepared = scored.rule.prepare_score(pod, self._world, rows)
            if prepared is None:
                continue
            follows = alone.score_alone(prepared) if alone is not None else None
            if follows is None:
                relative.append(scored)
            else:
                yield scored.weight, follows


def _kind(asked: RankRequest) -> Hashable:
    """All that rules which do not look around read of a pod; the shape has what it asks for."""
    spec = asked.pod.spec
    return (
        asked.profile.name,
        asked.shape.number,
        spec.tolerations,
        tuple(spec.node_selector.items()) if spec.node_selector else (),
        spec.affinity.node_affinity if spec.affinity is not None else None,
        tuple([container.image for container in spec.containers]),
        tuple([container.image for container in spec.init_containers]) if spec.init_containers else (),
        tuple([volume.image for volume in spec.volumes if volume.image is not None]) if spec.volumes else (),
    )
