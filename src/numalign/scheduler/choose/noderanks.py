"""The ranks of all nodes for one kind of pods, brought up to date by looking only at nodes that changed.

`standings` keeps one for each kind. A rank is the tier and the total score in one number; `podium` has the best ones.
What nodes are described with is fixed for the life of this; amounts and what the engine says are followed by their
change logs, and by holding the engine's word against what it said before where logs do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Codes, Decision, Randomness
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import Flags, World
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import FITS, Fixed, Rows, Scores
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.scheduler.choose import certainty
from numalign.scheduler.choose.bestranks import OUT, Podium

TIER_BITS: Final = 24
MOST_KNOWN: Final = 8192
CODES: Final = range(128)
"""All that the engine says of rows that take a pod."""
FEW: Final = 64
"""Changes up to which one row after the other is quicker than arrays over them."""
MANY: Final = 256
"""Changed ranks from which a new podium is quicker than moving rows on the old one."""

Weighted = tuple[int, Follows]


class Terms(Struct, frozen=True, kw_only=True):
    """What rules say row by row; `aligned`: kubelets pin something of the pod."""

    filters: Sequence[Follows]
    scores: Sequence[Weighted]
    zones_weight: int
    aligned: bool


class Ranks:
    def __init__(self, terms: Terms, shape: Shape, engine: Engine, world: World) -> None:
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
        self._podium: Podium | None = None
        """Made when somebody picks from it."""
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
        tier, weight = engine.certainty, terms.zones_weight
        self._of_zones = [weight * code + (tier(code, aligned=terms.aligned) << TIER_BITS) for code in CODES]
        """By code, what zones add."""

    def placed(self, pod: Pod, now: float, rng: Randomness) -> Decision | None:
        """On the best node that is certain to take it; None: on none."""
        self.refresh()
        if self._podium is None:
            self._podium = Podium(self._ranks)
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
        left = self._engine.survey(self._shape).item(row) >= 0 and totals[place] >= certainty.BY_SCORE << TIER_BITS
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

    def _look_at(self, rows: Iterable[int], judged: Codes) -> None:
        ranks, codes, podium = self._rank_of, self._code_of, self._podium
        is_open, base, likes, known, of_zones = self._is_open, self._base_of, self._likes, self._known, self._of_zones
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

    def _by_amounts(self, row: int) -> int:
        for each in self._filters:
            if each.row(row) != FITS:
                return OUT
        return sum([weight * each.row(row) for weight, each in self._scores])

    def _ranks_of(self, rows: Rows) -> NDArray[np.int64]:
        """Twin of `_look_at` for many rows, all of them open."""
        codes = self._codes[rows]
        fits = codes >= 0
        for each in self._filters:
            fits &= each.rows(rows) == FITS
        total = self._base[rows] + self._terms.zones_weight * codes.astype(np.int64)
        for weight, each in self._scores:
            total += weight * each.rows(rows)
        return np.where(fits, total + (self._engine.certainties(codes, aligned=self._terms.aligned) << TIER_BITS), OUT)
