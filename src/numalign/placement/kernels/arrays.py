"""All rows at once with NumPy, container by container: what serves until, or without, compiled kernels.

Rows whose containers each end up in one zone, and rows without alignment, are decided here; it is `simple` and `walk`
for all rows together. What is left over (masks of several zones, init containers that hand on what they got) goes
through `scalar` row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.requests import Program
from numalign.placement.kernels import directarrays, scalar, stackedarrays
from numalign.placement.kernels.block import NO_ROOM, UNFIT, Lanes, Left, Nodes, Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import ARRAYS, NONE, RESTRICTED, SINGLE, Plan, plan
from numalign.placement.kernels.simple import GENERAL
from numalign.placement.kernels.strategies import Scoring
from numalign.placement.kernels.tables import Numbers, Table, Truths, at_zones, neighbours
from numalign.placement.kernels.tally import Tally

evaluate_row = scalar.evaluate_row


def evaluate(block: RowBlock, rows: Rows, program: Program, scoring: Scoring) -> Outcomes:
    """All these rows; twin of `compiled.evaluate` and `scalar.evaluate`."""
    made = plan(block.rules, program, scoring)
    if directarrays.suits(made, block.free.shape[2]):
        outcomes = directarrays.decide(block, rows, made)
    else:
        outcomes = Outcomes(np.full(len(rows), GENERAL, np.int32), np.zeros((len(rows), made.steps), np.uint8))
    left = np.flatnonzero(outcomes.code_or_score == GENERAL)
    if len(left) and made.standing == ARRAYS and (made.plain or made.unaligned):
        found = Outcomes(outcomes.code_or_score[left], outcomes.masks[left])
        Walk(Table(block, rows[left], made), found).decide()
        outcomes.code_or_score[left], outcomes.masks[left] = found
    for number in np.flatnonzero(outcomes.code_or_score == GENERAL).tolist():
        code, masks = scalar.evaluate_row(block, int(rows[number]), made)
        outcomes.code_or_score[number], outcomes.masks[number] = code, masks
    return outcomes


def survey(
    block: RowBlock, nodes: Nodes, rows: Rows, made: Plan, answers: Outcomes, every: Lanes | None = None
) -> Left:
    """These rows, as far as a look at single zones decides, into `answers` by row; twin of `compiled.survey`."""
    if every is not None:
        follow(every, block, nodes)
    same = nodes.kind[neighbours(rows)] == nodes.number
    mine, others = (rows, rows[:0]) if same.all() else (rows[same], rows[~same])
    room = with_room(nodes, mine, every)
    if not room.all():
        answers.code_or_score[mine[~room]] = NO_ROOM
        mine = mine[room]
    if not len(mine) or not directarrays.suits(made, block.free.shape[2]):
        return Left(mine, others)
    found = directarrays.decide(block, mine, made, every)
    where = neighbours(mine)
    open_ = (found.code_or_score == GENERAL) | nodes.loose[where]
    if not open_.any():
        answers.code_or_score[where], answers.masks[where] = found
        return Left(mine[:0], others)
    closed = mine[~open_]
    answers.code_or_score[closed], answers.masks[closed] = found.code_or_score[~open_], found.masks[~open_]
    return Left(mine[open_], others)


def with_room(nodes: Nodes, rows: Rows, every: Lanes | None = None) -> Truths:
    """Which of the rows have room as a whole."""
    where = neighbours(rows)
    room: Truths = nodes.pods[where] < nodes.most_pods[where]
    if len(rows) <= stackedarrays.FEW:
        spare = nodes.offered.take(rows, axis=0) - nodes.requested.take(rows, axis=0)
        enough = spare.take(nodes.columns, axis=1) >= nodes.amounts
        # Rows that changed lately mostly have room, all of them.
        return room if enough.all() else np.asarray(room & enough.all(axis=1))
    for column, amount in zip(nodes.columns.tolist(), nodes.amounts.tolist(), strict=True):
        if every is not None:
            room &= every.spare[column][where] >= amount
        else:
            room &= nodes.requested[where, column] + amount <= nodes.offered[where, column]
    return room


def follow(every: Lanes, block: RowBlock, nodes: Nodes) -> None:
    """Copy the rows that lanes are behind with; twin of `surveying.follow`."""
    if len(every.behind):
        where = neighbours(every.behind)
        free, allocatable = block.free[where], block.allocatable[where]
        every.free[:, :, where] = np.maximum(free, 0).transpose(1, 2, 0)
        every.allocatable[:, :, where] = allocatable.transpose(1, 2, 0)
        every.spare[:, where] = (nodes.offered[where] - nodes.requested[where]).T
        apart = 1 << np.arange(block.cells.shape[1])
        of_nothing = ((free > 0) & (allocatable <= 0)).any(axis=2)
        every.odd[:, where] = (of_nothing | (block.cells[where] != apart)).T


class Walk:
    """A program's way through all rows of a table. Rows that are decided are no longer live."""

    def __init__(self, table: Table, outcomes: Outcomes) -> None:
        self.table = table
        self.plan = table.plan
        self.outcomes = outcomes
        self.tally = Tally(table)
        self.zones: Numbers = np.zeros(len(table), np.int64)
        """Of every row in the table the zone it is aligned to."""
        self.aligned: Truths = np.ones(len(table), np.bool_)
        """Whether it is aligned to one at all."""

    def decide(self) -> None:
        if self.plan.as_a_whole:
            self._align(self.plan.steps)
        for step in range(self.plan.steps):
            if self.plan.policy == NONE:
                self._step_anywhere(step)
            else:
                self._step_in_zone(step)
        live = self.table.live
        self.outcomes.code_or_score[self.table.numbers[live]] = self.tally.scores()[live]
        self.outcomes.masks[self.outcomes.code_or_score < 0] = 0

    def _step_in_zone(self, step: int) -> None:
        if not self.plan.as_a_whole:
            self._align(step)
        self.outcomes.masks[self.table.numbers, step] = self._stored()
        self.tally.add(step, self.zones, self.aligned)
        self._require_full_cores(step)
        if self.plan.as_a_whole:
            self._leave(self.aligned & ~self._holds(step), GENERAL)
        if step + 1 < self.plan.steps:
            for place, amount in self.table.asked(step):
                self.table.charge(place, self.zones, amount * (self.aligned & self.table.serves(place)))
        self._take_homeless(step)

    def _stored(self) -> Numbers:
        """Twin of `simple.stored`."""
        if self.plan.policy == SINGLE and self.plan.zones == 1:
            return np.zeros(len(self.table), np.int64)
        return np.where(self.aligned, 1 << self.zones, 0 if self.plan.policy == SINGLE else self.plan.every)

    def _align(self, ask: int) -> None:
        """Twin of `simple.first_zone`; rows without such a zone leave."""
        table, order = self.table, np.array(self.plan.zone_order)
        fits = table.fits(ask)[:, order]
        first = fits.argmax(axis=1)
        self.zones, self.aligned = order[first], table.in_zones(ask)
        lost = self.aligned & ~at_zones(fits, first)
        if lost.any():
            self._leave(lost, np.where(self._hopeless(ask), UNFIT, GENERAL)[lost & table.live])

    def _hopeless(self, ask: int) -> Truths:
        """Where no zone at all means no, of the rows without one."""
        table = self.table
        if self.plan.policy == SINGLE:
            never = np.ones(len(table), np.bool_)
        elif self.plan.policy == RESTRICTED:
            never = table.needs_one_zone(ask)
        else:
            return np.zeros(len(table), np.bool_)
        return never & table.memory_counts(ask)

    def _holds(self, step: int) -> Truths:
        return at_zones(self.table.fits(step), self.zones)

    def _require_full_cores(self, step: int) -> None:
        cpus = self.plan.cpus[step]
        if not self.plan.full_cores or not cpus:
            return
        if cpus % self.plan.full_cores:
            self._leave(np.ones(len(self.table), np.bool_), UNFIT)
            return
        taken = sum(self.plan.cpus[: step + 1])
        self._leave(self.table.full_core_cpus < taken, GENERAL)

    def _take_homeless(self, step: int) -> None:
        for place, amount in self.table.devices(step):
            outside = ~self.table.serves(place) & (self.table.homeless_size(place) > 0)
            if outside.any():
                self.table.homeless(place)[outside] -= amount
                self._leave(self.table.homeless(place) < 0, UNFIT)

    # Without alignment: amounts of the node as a whole decide, and a zone for memory

    def _step_anywhere(self, step: int) -> None:
        self.tally.add_all_zones(step)
        for place, amount in self.table.devices(step):
            known = self.table.serves(place) | (self.table.homeless_size(place) > 0)
            self.table.totals(place)[known] -= amount
            self._leave(self.table.totals(place) < 0, UNFIT)
        cpus = self.plan.cpus[step]
        if cpus:
            short = self.table.totals(0) < cpus
            self._leave(short, GENERAL if step else UNFIT)
            self._require_full_cores(step)
            self.table.totals(0)[:] -= cpus
        if self.plan.memory[step] < self.plan.devices[step]:
            self._place_memory(step)

    def _place_memory(self, step: int) -> None:
        fits = self.table.memory_fits(step)
        for place, amount in self.table.memory(step):
            fits &= self.table.size(place) >= amount
        self.zones = fits.argmax(axis=1)
        self._leave(~at_zones(fits, self.zones), GENERAL)
        for place, amount in self.table.memory(step):
            self.table.charge(place, self.zones, np.full(len(self.table), amount))

    def _leave(self, leaving: Truths, code: int | NDArray[np.int64]) -> None:
        """These rows are decided, or nothing for us. Rows that are not live are dropped once they are many."""
        table = self.table
        leaving = leaving & table.live
        if not leaving.any():
            return
        self.outcomes.code_or_score[table.numbers[leaving]] = code
        table.live &= ~leaving
        if np.count_nonzero(table.live) * 2 < len(table):
            kept = np.flatnonzero(table.live)
            self.zones, self.aligned = self.zones[kept], self.aligned[kept]
            self.tally.keep(kept)
            table.keep(kept)
