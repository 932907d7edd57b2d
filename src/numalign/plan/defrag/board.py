"""Who is where while a plan is made: rows with what is different on them, and units that moved.

`search` moves units. A move takes all pods of a unit away and then lands each of them on a row that certainly admits it
beside everything else that is there; rows that the goal needs keep what is reserved on them. A pod's successor may come
while the pod still ends, so on a row that a pod of the unit leaves it has to land in the same zones beside that pod, or
not at all until that pod is gone. A board is never changed: a move makes another one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.plan.defrag.goals import Goal
from numalign.plan.defrag.movable import Movable, Unit
from numalign.plan.defrag.rowstates import AS_IT_IS, RowState, RowStates


class Move(Struct, frozen=True):
    unit: int
    rows: tuple[int, ...]
    """By member, where it lands."""


class Board(Struct, frozen=True):
    states: Mapping[int, RowState]
    """Of rows that are different."""
    moves: tuple[Move, ...] = ()
    at: Mapping[int, tuple[int, ...]] = {}
    """By unit that moved, where its members are."""

    def state(self, row: int) -> RowState:
        return self.states.get(row, AS_IT_IS)


class Reserved(Struct, frozen=True):
    """What a row has to have of the goal once these pods are gone from it."""

    gain: int
    leaving: frozenset[str]


START: Final = Board({})
NOTHING_RESERVED: Final[Mapping[int, Reserved]] = {}
BANNED_NOWHERE: Final[frozenset[tuple[int, int]]] = frozenset()


class Mover:
    def __init__(
        self, states: RowStates, movable: Movable, goal: Goal, banned: Collection[tuple[int, int]] = BANNED_NOWHERE
    ) -> None:
        """`banned`: kinds of pods and rows that do not go together for a reason that row states do not know."""
        self._states, self._units, self._goal, self._banned = states, movable.units, goal, banned
        self._orders: dict[int, NDArray[np.intp]] = {}
        self.hopeful = False
        """Whether pods may land in zones that are right only if the evicted pod has ended by then."""
        self.left_out = False
        """Whether a landing was left out for that."""

    def moved(self, board: Board, number: int, reserved: Mapping[int, Reserved] = NOTHING_RESERVED) -> Board | None:
        """The unit where it fits best; None: some pod of it fits nowhere."""
        return next(self.ways(board, number, reserved), None)

    def ways(self, board: Board, number: int, reserved: Mapping[int, Reserved] = NOTHING_RESERVED) -> Iterator[Board]:
        """All rows where a unit of one pod may land, the best one first; of a group, one way."""
        unit = self._units[number]
        lifted = self._lifted(board, unit)
        if len(unit.members) > 1:
            found = self._landed_together(board, lifted, unit, reserved)
            if found is not None:
                yield found
            return
        for row, state in self._landings(lifted, unit, 0, reserved):
            if not self._waits_alike(board, lifted, unit, 0, row, state):
                continue
            yield _landed(lifted, Move(number, (row,)), {row: state})

    def _landed_together(
        self, before: Board, board: Board, unit: Unit, reserved: Mapping[int, Reserved]
    ) -> Board | None:
        rows: list[int] = []
        states = dict(board.states)
        for place in range(len(unit.members)):
            there = Board(states, board.moves, board.at)
            landings = self._landings(there, unit, place, reserved)
            found = next((each for each in landings if self._waits_alike(before, board, unit, place, *each)), None)
            if found is None:
                return None
            rows.append(found[0])
            states[found[0]] = found[1]
        return _landed(board, Move(unit.number, tuple(rows)), states)

    def _lifted(self, board: Board, unit: Unit) -> Board:
        """The board without the unit."""
        states = dict(board.states)
        before = board.at.get(unit.number)
        for place, member in enumerate(unit.members):
            if before is None:
                states[member.row] = states.get(member.row, AS_IT_IS).without(member.uid)
            else:
                states[before[place]] = states[before[place]].without_arrival(member.kind)
        return Board(states, board.moves, board.at)

    def _landings(
        self, board: Board, unit: Unit, place: int, reserved: Mapping[int, Reserved]
    ) -> Iterator[tuple[int, RowState]]:
        kind = unit.members[place].kind
        for row in self._order(board, kind).tolist():
            if (kind, row) in self._banned:
                continue
            state = board.state(row)
            after = self._states.takes(row, state, kind)
            if after is not None and self._keeps(row, after, reserved.get(row)):
                yield row, after

    def _waits_alike(self, before: Board, lifted: Board, unit: Unit, place: int, row: int, state: RowState) -> bool:
        """Whether the pod lands there as in this state also before the pods of its unit have ended."""
        if self.hopeful or before.state(row) == lifted.state(row):
            return True
        beside = self._states.takes(row, before.state(row), unit.members[place].kind)
        is_alike = beside is None or self._states.lands_alike(row, beside, state)
        self.left_out |= not is_alike
        return is_alike

    def _keeps(self, row: int, state: RowState, reserved: Reserved | None) -> bool:
        if reserved is None:
            return True
        then = RowState(state.gone | reserved.leaving, state.came)
        return self._goal.counted(row, then) >= reserved.gain

    def _order(self, board: Board, kind: int) -> NDArray[np.intp]:
        """Rows that may take a pod of this kind: the fullest first, so that others stay as roomy as they are."""
        own, rows, known = self._states.kinds[kind], self._states.rows, self._orders.get(kind)
        if known is None:
            there = np.flatnonzero(own.open)
            known = self._orders[kind] = there[np.argsort(rows.left(own.shape)[there], kind="stable")]
        may = rows.admitting(own.shape)
        may[list(board.states)] = True
        return known[may[known]]


def _landed(board: Board, move: Move, states: Mapping[int, RowState]) -> Board:
    return Board({**board.states, **states}, (*board.moves, move), {**board.at, move.unit: move.rows})


def total(goal: Goal, board: Board, rows: Sequence[int]) -> int:
    """How much of the goal there is."""
    return sum(goal.counted(row, board.state(row)) for row in rows)
