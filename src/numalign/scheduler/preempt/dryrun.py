"""Dry-run preemption: whether a node fits a pod without some of the node's pods.

`preemption` makes one `DryRun` per preemptor and asks it about nodes; `explain` asks a `Trial` about pods that could
be freed. `DryRunCache` keeps results by node, shared by equal preemptors whose result depends on that node only,
until the node's pods, zones, nominations or disruption budgets change. Nothing is evicted or charged here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.caches import LruCache
from numalign.api.objects.pod import Pod
from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.columns.shapes import Shape
from numalign.placement.explain import wording
from numalign.placement.explain.whatif import WhatIf
from numalign.placement.rules import nodestate
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes.nodeports import NodePorts
from numalign.placement.rules.resources.resourcesfit import (
    FreedRow,
    FreedRows,
    NodeResourcesFit,
    ResourceRequest,
    ResourceRequests,
)
from numalign.placement.rules.rule import FITS, Rows, StaticFilter
from numalign.scheduler.choose.filtering import PreparedFilter
from numalign.scheduler.choose.plugins import Budgets
from numalign.scheduler.preempt import victims
from numalign.scheduler.preempt.victims import Victims
from numalign.scheduler.queue.nominations import Nominations


class DryRunResult(Struct, frozen=True, kw_only=True):
    """The victims on a node, or why preemption does not help there."""

    victims: Victims | None = None
    reasons: tuple[str, ...] = ()
    budgeted: bool = False
    """Whether disruption budgets affected the result."""


class TrialPod(Struct, frozen=True, kw_only=True):
    """The pod of a trial, prepared by the filter plugins and the engine."""

    pod: Pod
    steps: tuple[PreparedFilter, ...]
    whatif: WhatIf
    world: ClusterState

    @property
    def wants(self) -> tuple[ResourceRequest, ...] | None:
        """The request that NodeResourcesFit checks; None: the profile does not enable the plugin."""
        return next(
            (step.prepared.refusals.wants for step in self.steps if isinstance(step.prepared, ResourceRequests)), None
        )


class DryRun(TrialPod, frozen=True, kw_only=True):
    """The dry run of one preemptor. Its `steps` leave out plugins whose result does not depend on pods."""

    shape: Shape
    budgets: Budgets

    def on(self, row: int, beside: Sequence[Pod] = ()) -> DryRunResult:
        """The victims on a row. `beside`: pods of the same or a higher priority that are nominated to the node."""
        there = (each.pod for each in self.world.on_row[row].values())
        lower = sorted((pod for pod in there if pod.spec.priority < self.pod.spec.priority), key=victims.importance)
        if not lower or not self.whatif.is_possible(row):
            return DryRunResult(reasons=(wording.NO_ZONES if lower else wording.NO_VICTIMS,))
        trial = Trial(self, row, beside)
        reasons = trial.refused([pod.metadata.uid for pod in lower])
        if reasons:
            return DryRunResult(reasons=reasons)
        chosen = victims.chosen(lower, self.budgets.violated_by(lower), trial.holders, trial.fits)
        reasons = () if chosen else (wording.NOT_NEEDED,)
        return DryRunResult(victims=chosen, reasons=reasons, budgeted=self.budgets.cover(lower))

    def suffices(self, row: int, removed: Collection[str], beside: Sequence[Pod] = ()) -> bool:
        """Whether the pod fits without these pods. `beside`: as for `on`."""
        return self.whatif.is_possible(row) and Trial(self, row, beside).fits(removed)

    @property
    def likeness(self) -> Hashable | None:
        """Equal for pods that get the same result on every node; None: the result depends on other nodes."""
        if not all(isinstance(step.rule, NodeResourcesFit | NodePorts) for step in self.steps):
            return None
        shape = type(self.whatif), self.shape.number
        return self.pod.spec.priority, shape, self.wants, nodestate.wanted(self.pod), len(self.steps)


class Trial:
    """Tries different sets of victims on one node."""

    def __init__(self, asked: TrialPod, row: int, beside: Sequence[Pod]) -> None:
        self._asked, self._row, self._beside = asked, row, beside
        self.holders = asked.whatif.holders(row)
        """The zones of each pod that holds resources of a zone."""
        self._admitted: dict[frozenset[str], bool] = {}
        self._others = tuple(step for step in asked.steps if not isinstance(step.prepared, ResourceRequests))

    def fits(self, removed: Collection[str]) -> bool:
        """Whether the pod fits without these pods."""
        if self._freed is not None and not self._freed.fits(removed):
            return False
        return not any(self._code(step, removed) for step in self._others) and not self._refused_by_engine(removed)

    def refused(self, removed: Collection[str]) -> tuple[str, ...]:
        """Why the pod does not fit without these pods; empty: it fits."""
        for step in self._asked.steps:
            code = self._code(step, removed)
            if code != FITS:
                return step.prepared.refusals[code].reasons
        return self._refused_by_engine(removed)

    def _code(self, step: PreparedFilter, removed: Collection[str]) -> int:
        """The code of a step, with the nominated pods and without them, because they may never arrive (spec 4.5)."""
        code = step.rule.filter_row(step.prepared, self._row, removed, self._beside)
        if code != FITS or not self._beside:
            return code
        return step.rule.filter_row(step.prepared, self._row, removed, ())

    def _refused_by_engine(self, removed: Collection[str]) -> tuple[str, ...]:
        if not self._asked.whatif.has_totals(self._row, removed, self._beside):
            return (wording.NOT_ENDED,)
        key = frozenset(uid for uid in removed if uid in self.holders)
        if key not in self._admitted:
            self._admitted[key] = self._asked.whatif.admits(self._row, key, self._beside)
        return () if self._admitted[key] else (wording.NO_ZONES,)

    @cached_property
    def _freed(self) -> FreedRow | None:
        """What NodeResourcesFit computes from the pods of lower priority. Nearly every preemptor needs it."""
        wants = self._asked.wants
        if wants is None:
            return None
        world = self._asked.world
        return FreedRow(
            FreedRows(wants, self._asked.pod.spec.priority, world), self._row, map(world.totals.charge_of, self._beside)
        )


def moving(steps: Sequence[PreparedFilter]) -> tuple[PreparedFilter, ...]:
    """The steps of plugins whose result depends on the pods of the node."""
    return tuple(step for step in steps if not isinstance(step.rule, StaticFilter))


UNKNOWN, NO, YES, AGAINST_BUDGETS = range(4)
AT_ONCE: Final = 32
"""Nodes evaluated between two checks whether enough candidates were found."""
MOST_TABLES: Final = 64
CRITERIA: Final = 5
"""Number of criteria in a rank."""


class DryRunTable:
    """Results by row, shared by equal preemptors."""

    def __init__(self, rows: int) -> None:
        self.states: NDArray[np.int8] = np.zeros(rows, np.int8)
        self.victims: dict[int, Victims] = {}
        self._ranks = np.zeros((CRITERIA, rows), np.float64)
        self._why: NDArray[np.int32] = np.zeros(rows, np.int32)
        self._reasons: list[tuple[str, ...]] = []
        self._budgeted: NDArray[np.bool_] = np.zeros(rows, np.bool_)
        self.read: tuple[int, ...] = ()
        """How far the logs were read."""

    def put(self, row: int, answer: DryRunResult) -> None:
        self._budgeted[row] = answer.budgeted
        if answer.victims is None:
            self.states[row], self._why[row] = NO, self._place(answer.reasons)
            return
        self.states[row] = AGAINST_BUDGETS if answer.victims.violations else YES
        self.victims[row] = answer.victims
        self._ranks[:, row] = answer.victims.rank

    def forget(self, rows: Rows | NDArray[np.int32]) -> None:
        self.states[rows] = UNKNOWN

    def forget_budgeted(self) -> None:
        self.states[self._budgeted] = UNKNOWN

    def best(self, rows: Rows) -> int:
        """The best of the rows with victims, criterion by criterion; among equal rows the first."""
        for ranks in self._ranks:
            own = ranks[rows]
            rows = rows[own == own.min()]
            if len(rows) == 1:
                break
        return int(rows[0])

    def reasons(self, rows: Rows) -> Counter[str]:
        """Reasons why preemption does not help on these rows, with counts."""
        found = Counter[str]()
        places, counts = np.unique(self._why[rows], return_counts=True)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            found.update(dict.fromkeys(self._reasons[place], count))
        return found

    def _place(self, reasons: tuple[str, ...]) -> int:
        if reasons not in self._reasons:
            self._reasons.append(reasons)
        return self._reasons.index(reasons)


class DryRunCache:
    def __init__(self, world: ClusterState, zones: ChangeLog, nominations: Nominations, budgets: Budgets) -> None:
        """`zones`: rows that changed in the engine."""
        self._world, self._logs, self._nominations = world, (world.totals.log, zones), nominations
        self._budgets = budgets
        self._tables: LruCache[Any, DryRunTable] = LruCache(MOST_TABLES)

    def table(self, asked: DryRun) -> DryRunTable:
        """The cached results for preemptors equal to this one."""
        likeness, rows = asked.likeness, self._world.capacity
        table = DryRunTable(rows) if likeness is None else self._tables.get((likeness, rows), lambda: DryRunTable(rows))
        read = self._read()
        if table.read and table.read != read:
            self._refresh(table)
        table.read = read
        return table

    def candidates(self, asked: DryRun, table: DryRunTable, rows: Rows, enough: int) -> Rows:
        """The first rows with victims: at least `enough`, one of them without a budget violation."""
        own = self._world.rows.get(self._nominations.node_of(asked.pod.metadata.uid), -1)
        # Cached results of that node count this pod among its nominated pods.
        table.forget(rows[rows == own])
        while True:
            states = table.states[rows]
            unknown = np.flatnonzero(states == UNKNOWN)[:AT_ONCE]
            known = int(unknown[0]) if len(unknown) else len(rows)
            end = _end(states[:known], enough)
            if end is not None or not len(unknown):
                break
            self._ask(asked, table, rows[unknown])
        found: Rows = rows[:end][states[:end] >= YES]
        return found

    def _ask(self, asked: DryRun, table: DryRunTable, rows: Rows) -> None:
        for row in rows.tolist():
            table.put(row, asked.on(row, self._nominations.above(self._world.names[row], asked.pod)))

    def _read(self) -> tuple[int, ...]:
        budgets = self._budgets
        logs = (log.generation for log in self._logs)
        return budgets.selections, budgets.generation, self._nominations.changes, *logs

    def _refresh(self, table: DryRunTable) -> None:
        selections, generation, nominations, *logs = table.read
        renamed = self._nominations.since(nominations)
        changed = [log.since(read) for log, read in zip(self._logs, logs, strict=True)]
        if selections != self._budgets.selections or renamed is None or any(each is None for each in changed):
            table.states[:] = UNKNOWN
            return
        if generation != self._budgets.generation:
            table.forget_budgeted()
        for rows in changed:
            if rows is not None:
                table.forget(rows)
        table.forget(np.array([self._world.rows[each] for each in renamed if each in self._world.rows], np.intp))


def _end(states: NDArray[np.int8], enough: int) -> int | None:
    """After how many nodes the search ends; None: more nodes are needed."""
    candidates = np.cumsum(states >= YES)
    clean = np.logical_or.accumulate(states == YES)
    ends = np.flatnonzero((candidates >= enough) & clean)
    return int(ends[0]) + 1 if len(ends) else None
