"""Scores rows by the devices that a pod would leave useless: the strategy LeastFragmentation.

The measure is FGD's (USENIX ATC'23), with the kubelet's verdict as its test. A row's fragmentation is the number of
free devices that the next pod cannot use, as expected over typical pods: all of them where the kernel says that the
kubelet would refuse the pod. The score of a pod falls with what it adds. `evaluation` calls `score` for rows that have
room, the planner also with a measure that looks at node totals alone, as FGD itself does. Typical shapes are given, or
those of the pods that were placed so far.

With `by_scarcity`, which FGD does not have, a shape counts by the part of all devices that it could use if all nodes
were empty: its weight is divided by the square of that part. Demand is held against supply once, and a device that it
loses counts as a part of what there is for it. So nodes that few shapes can do without are kept for those."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.columns import nodetotals
from numalign.placement.columns.requests import Program
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.block import ASK, Amounts, Codes, Masks, RowBlock, Rows
from numalign.placement.kernels.plan import Plan
from numalign.placement.verdicts import chargerow

if TYPE_CHECKING:
    from numalign.placement.columns.columns import Columns
    from numalign.placement.columns.shapes import Shape
    from numalign.placement.kernels.block import Kernel
    from numalign.placement.kernels.plan import Scoring

POPULAR: Final = 0.95
"""The part of all pods that typical shapes make up."""
EVERY: Final = 1024
"""Pods after which typical shapes are looked at again; before that, whenever there are twice as many."""
MOST_TYPICAL: Final = 256
HIGHEST: Final = 100.0

Expected = NDArray[np.float64]
Typical = Sequence[tuple["Shape", float]]


class RowEvaluation(Protocol):
    """What is used of `evaluation`, which calls this module: the rows of a kind of node, and how they are evaluated."""

    scoring: Scoring
    kernel: Kernel

    def program_of(self, shape: Shape, kind: int) -> Program: ...
    def block(self, kind: int) -> RowBlock: ...


class _Measure(Struct, frozen=True):
    """The typical shapes that ask for devices, on nodes of one kind.

    Shapes that ask managers for the same share a plan: one verdict holds for all of them."""

    plans: tuple[Plan, ...]
    plan_of: NDArray[np.intp]
    """By shape."""
    numbers: NDArray[np.intp]
    """By shape, its place among the typical ones."""
    weights: Expected
    columns: tuple[int, ...]
    """What the shapes ask of nodes as a whole."""
    amounts: Amounts
    """By column of these and shape."""
    devices: tuple[int, ...]
    """Columns of the devices that these shapes ask for."""
    useless: float
    """The part of shapes that ask for no device: they can use none, wherever they are."""


class _States(NamedTuple):
    """Rows as they are, or as they would be with a pod more."""

    block: RowBlock
    spare: Amounts
    """What nodes as a whole have left, by row and column."""
    room: NDArray[np.bool_]
    """Whether the row takes a pod more, as far as their number goes."""


class Fragmentation:
    """What is typical, and what it makes of rows."""

    def __init__(
        self, columns: Columns, evaluation: RowEvaluation, *, by_totals: bool = False, by_scarcity: bool = False
    ) -> None:
        """`by_totals`: what fits the node as a whole counts as fitting."""
        self._columns, self._evaluation, self._by_totals = columns, evaluation, by_totals
        self._by_scarcity, self._reported = by_scarcity, 0
        self._typical: Typical = ()
        self._plain: Typical = ()
        """Before scarcity."""
        self._measures: dict[int, _Measure] = {}
        self._before: Expected = np.zeros(0)
        """By row, what it is as long as the row does not change."""
        self._stale: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._seen = -1
        """The generation of the columns up to which changes are known."""
        self._placed: dict[int, tuple[Shape, int]] = {}
        self._pods = 0

    def set_typical(self, typical: Typical) -> None:
        """Shapes with weights, which need not add up to 1."""
        self._plain = typical
        self._weigh()

    def follows_nodes(self) -> bool:
        """Looks at the nodes again if another number of them has reports. Whether that changes what is scarce."""
        kinds = self._columns.kind[: self._columns.height]
        reported = int(np.count_nonzero(kinds >= 0))
        if not self._by_scarcity or reported == self._reported:
            return False
        self._reported = reported
        self._weigh()
        return bool(self._plain)

    def _weigh(self) -> None:
        self._typical = _normalised(self._plain)
        self._measures.clear()
        self._seen = -1
        if self._by_scarcity and self._reported and self._typical:
            parts = self._parts()
            scarce = [
                (shape, weight / part**2 if part else weight * (part is None))
                for (shape, weight), part in zip(self._typical, parts, strict=True)
            ]
            self._typical = _normalised(scarce) or self._typical
            self._measures.clear()

    def _parts(self) -> list[float | None]:
        """By typical shape, the part of all devices that it could use if all nodes were empty; None: it uses none."""
        columns, kinds = self._columns, self._columns.kind[: self._columns.height]
        there, usable = np.zeros(len(self._typical)), np.zeros(len(self._typical))
        for kind in sorted({kind for kind in kinds.tolist() if kind >= 0}):
            measure, rows = self._measure(kind), np.flatnonzero(kinds == kind)
            if not measure.devices:
                continue
            # Nodes that offer the same are looked at once.
            alike = np.column_stack([columns.stock[rows], columns.offered[rows]])
            _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
            empty = self._empty(kind, rows[first].astype(np.int32))
            idle = self._idle(measure, empty) * times
            there[measure.numbers] += idle.sum()
            usable[measure.numbers] += idle @ self._fits(measure, empty)
        return [float(mine / all_) if all_ else None for mine, all_ in zip(usable, there, strict=True)]

    def learn(self, shape: Shape) -> bool:
        """A pod of this shape was placed. Whether that changes what is typical."""
        self._placed[shape.number] = shape, self._placed.get(shape.number, (shape, 0))[1] + 1
        self._pods += 1
        if self._pods % EVERY and self._pods & (self._pods - 1):
            return False
        ranked = sorted(self._placed.values(), key=lambda each: (-each[1], each[0].number))
        found: list[tuple[Shape, float]] = []
        covered = 0
        for own, pods in ranked[:MOST_TYPICAL]:
            if covered < POPULAR * self._pods:
                found.append((own, pods))
                covered += pods
        self.set_typical(found)
        return True

    def retain(self, used: Container[int]) -> None:
        """Forget the shapes that nothing refers to any more."""
        self._placed = {number: each for number, each in self._placed.items() if number in used}
        self._pods = sum(pods for _, pods in self._placed.values())

    def score(self, kind: int, shape: Shape, rows: Rows, codes: Codes, masks: Masks) -> None:
        """Replace the scores of these rows, all of this kind and with room. `masks`: by row, the pod's zones."""
        measure = self._measure(kind)
        if not measure.devices or not len(rows):
            return
        before = self._states(kind, rows)
        grown = self._expected(measure, self._after(kind, shape, rows, before, masks[rows]))
        grown -= self._as_it_is(measure, rows, before)
        codes[rows] = np.maximum(1.0, np.floor(HIGHEST / (1.0 + np.exp(grown)))).astype(np.int8)

    def expected(self, kind: int, rows: Rows) -> Expected:
        """The fragmentation of these rows, all of this kind."""
        return self._expected(self._measure(kind), self._states(kind, rows))

    def _as_it_is(self, measure: _Measure, rows: Rows, states: _States) -> Expected:
        """Computed anew for rows that have changed."""
        log = self._columns.log
        if self._seen != log.generation:
            changed = log.since(self._seen) if self._seen >= 0 and len(self._stale) == self._columns.height else None
            if changed is None:
                self._before, self._stale = np.zeros(self._columns.height), np.ones(self._columns.height, np.bool_)
            else:
                self._stale[changed] = True
            self._seen = log.generation
        if self._stale[rows].any():
            self._before[rows] = self._expected(measure, states)
            self._stale[rows] = False
        return self._before[rows]

    def _measure(self, kind: int) -> _Measure:
        found = self._measures.get(kind)
        if found is not None:
            return found
        known: dict[Program, int] = {}
        asked, plan_of, weights, devices = list[dict[int, int]](), list[int](), list[float](), set[int]()
        numbers = list[int]()
        for number, (shape, weight) in enumerate(self._typical):
            program = self._evaluation.program_of(shape, kind)
            own = {column for step in program.steps for column, amount in step.ask.devices if amount}
            if own:
                devices |= own
                asked.append(dict(nodetotals.totals(shape, self._columns).pairs))
                plan_of.append(known.setdefault(program, len(known)))
                weights.append(weight)
                numbers.append(number)
        rules, columns = self._columns.kinds[kind], sorted({column for each in asked for column in each})
        found = self._measures[kind] = _Measure(
            plans=tuple(plans.plan(rules, program, self._evaluation.scoring) for program in known),
            plan_of=np.array(plan_of, np.intp),
            numbers=np.array(numbers, np.intp),
            weights=np.array(weights),
            columns=tuple(columns),
            amounts=np.array([[each.get(column, 0) for each in asked] for column in columns], np.int64),
            devices=tuple(sorted(devices)),
            useless=1.0 - sum(weights),
        )
        return found

    def _states(self, kind: int, rows: Rows) -> _States:
        block, columns = self._evaluation.block(kind), self._columns
        own = block._replace(
            free=block.free[rows],
            stock=block.stock[rows],
            homeless=block.homeless[rows],
            full_core_cpus=block.full_core_cpus[rows],
            cells=block.cells[rows],
            busy=block.busy[rows],
            # As if no core was divided between pods: else counts would tell before a pod comes, and not after it.
            split_known=np.ones(len(rows), np.bool_),
            totals=None,
        )
        return _States(own, columns.spare[rows], columns.pods[rows] < columns.most_pods[rows])

    def _empty(self, kind: int, rows: Rows) -> _States:
        """The rows without any pod."""
        block, columns = self._evaluation.block(kind), self._columns
        stock = block.stock[rows]
        free = block.allocatable[stock]
        own = block._replace(
            free=free,
            stock=stock,
            homeless=block.homeless_size[stock],
            full_core_cpus=free[:, :, 0].sum(axis=1),
            cells=block.cells[rows],
            busy=np.zeros_like(block.busy[rows]),
            split_known=np.ones(len(rows), np.bool_),
            totals=None,
        )
        return _States(own, columns.offered[rows], np.ones(len(rows), np.bool_))

    def _after(self, kind: int, shape: Shape, rows: Rows, before: _States, masks: Masks) -> _States:
        """The same rows with a pod of the shape on each."""
        columns, spare = self._columns, before.spare.copy()
        for column, amount in nodetotals.totals(shape, columns).pairs:
            spare[:, column] -= amount
        room: NDArray[np.bool_] = columns.pods[rows] + 1 < columns.most_pods[rows]
        if self._by_totals:
            return before._replace(spare=spare, room=room)
        program = self._evaluation.program_of(shape, kind)
        plan, free = plans.plan(columns.kinds[kind], program, self._evaluation.scoring), before.block.free.copy()
        full = before.block.full_core_cpus.copy()
        there = free[:, : plan.zones, 0].sum(axis=1)
        for zones in sorted(set(map(tuple, masks.tolist()))):
            mine = np.flatnonzero((masks == zones).all(axis=1))
            spots = chargerow.spots(plan, zones, free.shape[2])
            if spots is None:
                _spread(plan, zones, free, mine)
                cpus = sum(plan.cpus[: plan.steps])
            else:
                flat = free.reshape(len(free), -1)
                for at, amount in spots.amounts:
                    flat[mine, at] -= amount
                cpus = spots.cpus
            if cpus:
                full[mine] = np.where(full[mine] == there[mine], full[mine] - cpus, -1)
        return _States(before.block._replace(free=free, full_core_cpus=full), spare, room)

    def _expected(self, measure: _Measure, states: _States) -> Expected:
        idle = self._idle(measure, states)
        lost: Expected = (1.0 - self._fits(measure, states) @ measure.weights) * idle
        return lost

    def _idle(self, measure: _Measure, states: _States) -> Expected:
        """Free devices by row."""
        columns = list(measure.devices)
        if self._by_totals:
            found: Expected = np.maximum(states.spare[:, columns], 0).sum(axis=1)
        else:
            found = np.maximum(states.block.free[:, :, columns], 0).sum(axis=(1, 2))
        return found

    def _fits(self, measure: _Measure, states: _States) -> NDArray[np.bool_]:
        """Whether a row admits a shape, by both."""
        rows = np.arange(len(states.room), dtype=np.int32)
        admitted = np.empty((len(rows), len(measure.plans)), np.bool_)
        for number, plan in enumerate(measure.plans):
            if self._by_totals:
                admitted[:, number] = states.room
            else:
                codes = self._evaluation.kernel.evaluate(states.block, rows, plan).code_or_score
                admitted[:, number] = states.room & ((codes >= 0) | (codes == ASK))
        fits: NDArray[np.bool_] = admitted[:, measure.plan_of]
        for column, amounts in zip(measure.columns, measure.amounts, strict=True):
            # What a shape does not ask for never refuses it, even if pods hold more than there is.
            fits &= (states.spare[:, column, None] >= amounts) | (amounts == 0)
        return fits


def _normalised(typical: Typical) -> Typical:
    """With weights that add up to 1; none if all are 0."""
    total = sum(weight for _, weight in typical)
    return tuple((shape, weight / total) for shape, weight in typical) if total else ()


def _spread(plan: Plan, masks: Sequence[int], free: Amounts, rows: NDArray[np.intp]) -> None:
    """Take a pod that has several zones off them, from the first one on: which one gives how much is open."""
    for step, mask in enumerate(masks):
        amounts = [(0, plan.cpus[step])] + [
            (plan.columns[plan.places_asked[item]], plan.amounts[item])
            for item in range(plan.memory[step], plan.memory[step + 1])
        ]
        for column, amount in amounts:
            left = np.full(len(rows), amount)
            for zone in range(plan.zones):
                if (mask or plan.every) >> zone & 1:
                    taken = np.minimum(left, np.maximum(free[rows, zone, column], 0))
                    free[rows, zone, column] -= taken
                    left -= taken
