"""What a row gains if some of its pods go, and the cheapest set of rows that gains enough.

`search` calls `found` and `chosen`. An option says how much of the goal a row has without some units; the rows are then
chosen by dynamic programming over the gain, with at most one option of each. Where the pods land is not looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.plan.defrag.goals import Blocking, Goal
from numalign.plan.defrag.movable import Unit
from numalign.plan.defrag.rowstates import AS_IT_IS, RowState

UNREACHABLE: Final = 1 << 61
NOTHING: Final = -1


class Option(Struct, frozen=True):
    row: int
    gain: int
    """How much of the goal the row has then."""
    blocking: Blocking
    cost: int


def gone(units: Sequence[Unit], numbers: Blocking, row: int) -> frozenset[str]:
    """Uids of the pods of these units on a row."""
    return frozenset(each.uid for number in numbers for each in units[number].members if each.row == row)


def found(
    goal: Goal, units: Sequence[Unit], on_row: Mapping[int, Sequence[Unit]], *, thorough: bool
) -> dict[int, list[Option]]:
    """By row, the cheapest first: the row as it is, if it has anything of the goal, and without units in the way."""
    options: dict[int, list[Option]] = {}
    for row in goal.rows().tolist():
        base = goal.counted(row, AS_IT_IS)
        own = [Option(row, base, frozenset(), 0)] if base else []
        for blocking in goal.blocking(row, on_row.get(row, ()), thorough=thorough):
            gain = goal.counted(row, RowState(gone(units, blocking, row)))
            if gain > base:
                kept = blocking if thorough else _reprieved(goal, units, row, blocking, gain)
                own.append(Option(row, gain, kept, sum(units[number].cost for number in kept)))
        if own:
            options[row] = sorted(own, key=lambda each: (each.cost, -each.gain, sorted(each.blocking)))
    return options


def most(goal: Goal, units: Sequence[Unit], on_row: Mapping[int, Sequence[Unit]]) -> int:
    """How much of the goal there would be if all pods that may move were gone."""
    return sum(
        goal.counted(row, RowState(frozenset(each.uid for unit in on_row.get(row, ()) for each in unit.members)))
        for row in goal.rows().tolist()
    )


def chosen(options: Mapping[int, Sequence[Option]], wanted: int, banned: Collection[Option]) -> list[Option] | None:
    """The cheapest options that gain so much together; None: all of them gain less."""
    rows, needs = list(options), np.arange(wanted + 1)
    # By need, the least cost of meeting it with the rows so far.
    best = np.where(needs == 0, 0, UNREACHABLE)
    taken = np.full((len(rows), wanted + 1), NOTHING, np.int16)
    for place, row in enumerate(rows):
        before = best.copy()
        for number, option in enumerate(options[row]):
            if option not in banned:
                with_it = before[np.maximum(needs - option.gain, 0)] + option.cost
                better = with_it < best
                best[better], taken[place][better] = with_it[better], number
    if best[wanted] >= UNREACHABLE:
        return None
    found, need = list[Option](), wanted
    for place in range(len(rows) - 1, -1, -1):
        number = int(taken[place][need])
        if number != NOTHING:
            found.append(options[rows[place]][number])
            need = max(0, need - found[-1].gain)
    return found[::-1]


def _reprieved(goal: Goal, units: Sequence[Unit], row: int, blocking: Blocking, gain: int) -> Blocking:
    """The set without units that need not go, the most expensive first."""
    for number in sorted(blocking, key=lambda number: -units[number].cost):
        fewer = blocking - {number}
        if goal.counted(row, RowState(gone(units, fewer, row))) >= gain:
            blocking = fewer
    return blocking
