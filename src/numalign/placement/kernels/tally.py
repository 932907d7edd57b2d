"""Scores of all rows at once, container by container: twin of `scoring` for `arrays`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from numalign.placement.kernels.block import Floats
from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.scoring import LARGE, PER_ZONE, SHIFT, WHOLE
from numalign.placement.kernels.strategies import BALANCED, FEWEST_ZONES, LEAST
from numalign.placement.kernels.tables import Numbers, Table, Truths, at_zones


def mean(total: Numbers, count: Numbers) -> Numbers:
    """Twin of `scoring.summed_up`."""
    return np.where(count > 0, np.minimum(np.maximum(total // np.maximum(count, 1), 1), 100), 100)


class Tally:
    """Sums over containers, for the rows that are left in a table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.plan: Plan = table.plan
        self.total: Numbers = np.zeros(len(table), np.int64)
        self.count: Numbers = np.zeros(len(table), np.int64)

    def keep(self, kept: NDArray[np.intp]) -> None:
        self.total, self.count = self.total[kept], self.count[kept]

    def scores(self) -> Numbers:
        return mean(self.total, self.count)

    def add(self, step: int, zones: Numbers, aligned: Truths) -> None:
        """A container that each row places in one zone."""
        sums = Sums(self.plan, len(self.table))
        for place, amount in self._counting(step):
            there = self.table.allocatable_at(place, zones)
            left = at_zones(self.table.free(place), zones) - amount
            sums.add(place, left, there, aligned & self.table.serves(place))
        self._add(sums, 1)

    def add_all_zones(self, step: int) -> None:
        """A container that is not aligned."""
        sums = Sums(self.plan, len(self.table))
        for place, amount in self._counting(step):
            serves = self.table.serves(place)
            left = self._free_in_zones(place) - amount
            sums.add(place, left, self.table.allocatable(place), serves)
        self._add(sums, self.plan.zones)

    def _free_in_zones(self, place: int) -> Numbers:
        """What zones have: devices without one are taken last."""
        if place and not self.table.is_device(place):
            return np.asarray(self.table.free(place).sum(axis=1))
        homeless = self.table.homeless(place) if place else 0
        return np.asarray(np.maximum(self.table.totals(place) - homeless, 0))

    def _counting(self, step: int) -> list[tuple[int, int]]:
        width = self.table.block.allocatable.shape[2]
        return [
            (place, amount)
            for place, amount in self.table.asked(step)
            if amount and self.plan.weights[place] and self.plan.columns[place] < width
        ]

    def _add(self, sums: Sums, zones: int) -> None:
        counts = sums.count > 0
        self.total += np.where(counts, sums.combined(zones), 0)
        self.count += counts


class Sums:
    """Over the resources of one container; twin of the loop in `scoring.container`."""

    def __init__(self, plan: Plan, rows: int) -> None:
        self.plan = plan
        self.count: Numbers = np.zeros(rows, np.int64)
        self.first: Numbers = np.zeros(rows, np.int64)
        self.second: Numbers = np.zeros(rows, np.int64)

    def add(self, place: int, left: Numbers | Floats, there: Numbers | Floats, counts: Truths) -> None:
        """Whole numbers all of them, if only as floats."""
        counts = counts & (there > 0)
        if not counts.all():
            left, there = np.where(counts, left, 0), np.where(counts, there, 1)
        left = np.maximum(left, 0)
        self.count += counts
        if self.plan.strategy == BALANCED:
            left, there = left.astype(np.int64), there.astype(np.int64)
            shift = np.where(there > LARGE, SHIFT, 0)
            left, there = left >> shift, there >> shift
            used = np.maximum(there - left, 0) * WHOLE // there * counts
            self.first += used
            self.second += used * used
        else:
            shares = np.minimum(left * 100.0 / there, 100.0).astype(np.int64)
            weights = counts * np.int64(self.plan.weights[place])
            self.first += shares * weights
            self.second += weights

    def combined(self, zones: int) -> Numbers:
        """Twin of `scoring.combined`."""
        if self.plan.strategy == FEWEST_ZONES:
            return np.full(len(self.count), 100 - PER_ZONE * (zones - 1))
        if self.plan.strategy == BALANCED:
            spread = np.sqrt(self.count * self.second - self.first * self.first).astype(np.int64)
            return 100 - spread // np.maximum(self.count, 1) // (WHOLE // 100)
        share = self.first // np.maximum(self.second, 1)
        return share if self.plan.strategy == LEAST else 100 - share
