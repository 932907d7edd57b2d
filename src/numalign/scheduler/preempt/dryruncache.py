"""Answers of dry runs, kept by row: a cluster that was looked through once costs little to look through again.

`preemption` searches here. For pods whose fate on a node hangs on nothing but that node, answers are shared by all that
are alike, and hold until something about the node changes: its pods, its zones, who was promised its room, or what
disruption budgets say about its pods. The best of many nodes is found by arrays."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from numalign.api.caches import LruCache
from numalign.placement.columns.changelog import ChangeLog
from numalign.placement.rules.clusterstate import World
from numalign.placement.rules.rule import Rows
from numalign.scheduler.preempt.budgets import Budgets
from numalign.scheduler.preempt.dryrun import DryRun, DryRunResult
from numalign.scheduler.preempt.victims import Victims
from numalign.scheduler.queue.nominations import Nominations

UNKNOWN, NO, YES, AGAINST_BUDGETS = range(4)
AT_ONCE: Final = 32
"""Nodes that are asked before it is looked whether that is enough."""
MOST_TABLES: Final = 64
CRITERIA: Final = 5
"""Numbers in a rank."""


class DryRunTable:
    """Answers by row, for pods that are alike."""

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
        """Of rows that have victims, by one criterion after the other; among equals the first."""
        for ranks in self._ranks:
            own = ranks[rows]
            rows = rows[own == own.min()]
            if len(rows) == 1:
                break
        return int(rows[0])

    def reasons(self, rows: Rows) -> Counter[str]:
        """Why nobody need leave these, how often each."""
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
    def __init__(self, world: World, zones: ChangeLog, nominations: Nominations, budgets: Budgets) -> None:
        """`zones`: rows of which the engine knows something new."""
        self._world, self._logs, self._nominations = world, (world.totals.log, zones), nominations
        self._budgets = budgets
        self._tables: LruCache[Any, DryRunTable] = LruCache(MOST_TABLES)

    def table(self, asked: DryRun) -> DryRunTable:
        """What is known so far for pods like this one."""
        likeness, rows = asked.likeness, self._world.capacity
        table = DryRunTable(rows) if likeness is None else self._tables.get((likeness, rows), lambda: DryRunTable(rows))
        read = self._read()
        if table.read and table.read != read:
            self._refresh(table)
        table.read = read
        return table

    def candidates(self, asked: DryRun, table: DryRunTable, rows: Rows, enough: int) -> Rows:
        """The first of these rows that have victims: so many, and one among them that goes against no budget."""
        own = self._world.rows.get(self._nominations.node_of(asked.pod.metadata.uid), -1)
        # What others are told about that node has this very pod among those who were promised its room.
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
    """How many of the nodes it takes; None: more than these."""
    candidates = np.cumsum(states >= YES)
    clean = np.logical_or.accumulate(states == YES)
    ends = np.flatnonzero((candidates >= enough) & clean)
    return int(ends[0]) + 1 if len(ends) else None
