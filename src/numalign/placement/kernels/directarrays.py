"""The most common case for all rows at once: twin of `abreast` for `arrays`.

A resource of a zone is one array over all rows, and a zone is only looked at as long as rows are without one. Rows
where any container finds no zone with room for all it asks stay `GENERAL`."""

from __future__ import annotations

import numpy as np

from numalign.placement.kernels import stackedarrays, survey
from numalign.placement.kernels.block import Floats, Lanes, Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import SINGLE, Plan
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.tables import Numbers, Truths, neighbours
from numalign.placement.kernels.tally import Sums, mean

Zone = list[tuple[Numbers, Numbers] | tuple[Floats, Floats]]
"""By place what is free and what there is, both by row."""


def suits(plan: Plan, width: int) -> bool:
    return survey.suits(plan) and plan.columns[-1] < width


def decide(block: RowBlock, rows: Rows, plan: Plan, every: Lanes | None = None) -> Outcomes:
    """`every`: the lanes of all rows, if they are at hand."""
    found = stackedarrays.decide(block, rows, plan) if len(rows) <= stackedarrays.FEW else None
    return found or Lookout(block, rows, plan, every).decide()


class Lookout:
    """Rows on their way through a plan, zone by zone."""

    def __init__(self, block: RowBlock, rows: Rows, plan: Plan, every: Lanes | None = None) -> None:
        self._block = block
        self._every = every
        self._where = neighbours(rows)
        self._plan = plan
        self._masks = np.zeros((len(rows), plan.steps), np.uint8)
        self._zones: dict[int, Zone] = {}

    def decide(self) -> Outcomes:
        rows, plan = len(self._masks), self._plan
        total, count, lost = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        for step in range(plan.steps):
            needs = _needs(plan, step)
            if not plan.cpus[step] and plan.memory[step] == plan.memory[step + 1]:
                self._masks[:, step] = 0 if plan.policy == SINGLE else plan.every
                continue
            sums = Sums(plan, rows)
            lost |= self._place(step, needs, sums, ~lost)
            total += np.where(sums.count > 0, sums.combined(1), 0)
            count += sums.count > 0
        self._masks[lost] = 0
        return Outcomes(np.where(lost, GENERAL, mean(total, count)).astype(np.int32), self._masks)

    def _place(self, step: int, needs: list[tuple[int, int]], sums: Sums, wanting: Truths) -> Truths:
        """Find a zone for every row that wants one, and charge it; which rows are left without."""
        plan = self._plan
        for zone in plan.zone_order:
            room = wanting.copy()
            if plan.memory[step] < plan.devices[step]:
                room &= self._block.cells[self._where, zone] == 1 << zone
            mine = self._zone(zone)
            for place, need in needs:
                room &= mine[place][0] >= need
            self._masks[room, step] = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << zone
            self._take(mine, needs, sums, room, is_last=step + 1 == plan.steps)
            wanting = wanting & ~room
            if not wanting.any():
                break
        return wanting

    def _take(self, mine: Zone, needs: list[tuple[int, int]], sums: Sums, room: Truths, *, is_last: bool) -> None:
        everywhere = bool(room.all())
        for place, need in needs:
            free, there = mine[place]
            if need and self._plan.weights[place]:
                sums.add(place, free - need, there, room)
            if not is_last:
                np.subtract(free, need if everywhere else need * room, out=free)

    def _zone(self, zone: int) -> Zone:
        """Read once, as rows lie far apart."""
        found = self._zones.get(zone)
        if found is None:
            read = self._read if self._every is None else self._read_lane
            found = self._zones[zone] = [read(zone, column) for column in self._plan.columns]
        return found

    def _read(self, zone: int, column: int) -> tuple[Numbers, Numbers]:
        block, where = self._block, self._where
        return np.maximum(block.free[where, zone, column], 0), block.allocatable[where, zone, column].copy()

    def _read_lane(self, zone: int, column: int) -> tuple[Floats, Floats]:
        """Without a copy where nobody charges it."""
        assert self._every is not None, "lanes are read where there are some"
        free = self._every.free[zone, column][self._where]
        there = self._every.allocatable[zone, column][self._where]
        return free.copy() if self._plan.steps > 1 else free, there


def _needs(plan: Plan, step: int) -> list[tuple[int, int]]:
    """By place; what is named without an amount included."""
    first, end = plan.memory[step], plan.memory[step + 1]
    return [(0, plan.cpus[step]), *zip(plan.places_asked[first:end], plan.amounts[first:end], strict=True)]
