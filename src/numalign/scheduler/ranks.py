"""The ranks of all nodes for one kind of pods, brought up to date by looking only at nodes that changed.

`standings` keeps one for each kind. A rank is the tier and the total score in one number; the best one is found as the
engine finds the best code of a shape, by `Peaks`. What nodes are described with is fixed for the life of this; amounts
are followed by their change log, and what the engine says by holding it against what it said before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.pod import Pod
from numalign.placement.decisions import Decision, Randomness
from numalign.placement.engine import Engine
from numalign.placement.pick import BLOCK, Codes, Peaks
from numalign.placement.rules.rowtables import Follows
from numalign.placement.rules.rule import FITS, Fixed, Rows, Scores
from numalign.placement.rules.world import Flags, World
from numalign.placement.shapes import Shape
from numalign.scheduler import tiers

TIER_BITS: Final = 24
OUT: Final = -1
"""The rank of a node that does not take the pod."""
FEW: Final = 8
"""Changed rows up to which one by one is quicker than all at once."""
NONE: Final[Rows] = np.zeros(0, np.intp)

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
        room = -(-world.capacity // BLOCK) * BLOCK
        self._ranks: Codes = np.full(room, OUT, np.int32)
        self._codes: Codes = np.full(room, OUT, np.int32)
        """The engine's, as far as ranks know them."""
        self._peaks = Peaks(room, OUT)
        self._seen = -1
        """Up to where the log was read; -1: never."""
        self.fitting = 0

    def placed(self, pod: Pod, now: float, rng: Randomness) -> Decision | None:
        """On the best node that is certain to take it; None: on none."""
        self.refresh()
        if not self._peaks.has_candidates:
            return None
        row = self._peaks.pick(self._ranks, rng.random())
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
        return np.not_equal(self._ranks[: len(self._open)], OUT)

    def at(self, rows: Rows) -> Scores:
        return self._ranks[rows].astype(np.int64)

    def refresh(self) -> None:
        """Look at rows that changed."""
        codes = self._engine.survey(self._shape)[: min(len(self._codes), self._engine.columns.height)]
        differs = codes != self._codes[: len(codes)]
        differing: Rows = differs.nonzero()[0] if differs.any() else NONE
        self._codes[differing] = codes[differing]
        few = self._log.few_since(self._seen) if self._seen >= 0 else None
        if few is None or len(differing) > FEW:
            self._look_at_many(differing)
        else:
            for row in {*few, *differing.tolist()}:
                self._look_at(row)
        self._seen = self._log.generation

    def _demote(self, place: int, row: int, totals: Scores) -> None:
        """The row did not take the pod, for the engine has looked closer; it may still be a last resort, after all
        others."""
        left = self._engine.survey(self._shape).item(row) >= 0 and totals[place] >= tiers.BY_SCORE << TIER_BITS
        totals[place] = totals[place] - (1 << TIER_BITS) if left else OUT

    def _look_at_many(self, differing: Rows) -> None:
        changed = self._log.since(self._seen) if self._seen >= 0 else None
        rows = np.flatnonzero(self._open) if changed is None else np.union1d(changed, differing).astype(np.intp)
        rows = rows[self._open[rows]]
        self._ranks[rows] = self._ranks_of(rows)
        self._peaks.rebuild(self._ranks)
        self.fitting = int(np.count_nonzero(self._ranks != OUT))

    def _look_at(self, row: int) -> None:
        rank, before = self._rank(row), self._ranks.item(row)
        if rank != before:
            self.fitting += (rank != OUT) - (before != OUT)
            self._ranks[row] = rank
            self._peaks.update(self._ranks, row, before)

    def _rank(self, row: int) -> int:
        code = self._codes.item(row)
        if code < 0 or not self._open[row]:
            return OUT
        for each in self._filters:
            if each.row(row) != FITS:
                return OUT
        total = self._base.item(row) + self._terms.zones_weight * code
        for weight, each in self._scores:
            total += weight * each.row(row)
        return total + (tiers.of_row(code, aligned=self._terms.aligned) << TIER_BITS)

    def _ranks_of(self, rows: Rows) -> NDArray[np.int64]:
        """Twin of `_rank` for many rows, all of them open."""
        codes = self._codes[rows]
        fits = codes >= 0
        for each in self._filters:
            fits &= each.rows(rows) == FITS
        total = self._base[rows] + self._terms.zones_weight * codes.astype(np.int64)
        for weight, each in self._scores:
            total += weight * each.rows(rows)
        return np.where(fits, total + (tiers.of_rows(codes, aligned=self._terms.aligned) << TIER_BITS), OUT)
