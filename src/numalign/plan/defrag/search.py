"""Searches for moves after which the goal is there, with as few evictions as possible.

`planner` calls `Search.found`. First the cheapest rows that gain enough are chosen (`options`), and their units are
moved out of the way one by one; rows whose units find no other place are not chosen again, a few times over. On small
clusters every sequence of moves that is shorter is then tried, which also proves that there is none, as far as its
patience goes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from numalign.plan.defrag import board as boards
from numalign.plan.defrag import options
from numalign.plan.defrag.board import START, Board, Mover, Reserved
from numalign.plan.defrag.goals import Goal
from numalign.plan.defrag.movable import Movable, Unit
from numalign.plan.defrag.options import Option
from numalign.plan.defrag.rowstates import AS_IT_IS, RowStates

FEW_ROWS: Final = 12
"""Up to so many rows every set of the pods of a row is looked at."""
MOST_ROUNDS: Final = 8
"""Times that rows are chosen anew, without what failed before."""
PATIENCE: Final = 4_000
"""Boards that the search for shorter sequences looks at."""


class Found(Struct, frozen=True, kw_only=True):
    board: Board | None
    """None: no sequence of moves was found."""
    reserved: dict[int, int]
    """By row, how much of the goal the plan counts on there."""
    at_least: int
    """Evictions that every sequence needs, as far as that is proven."""
    exhausted: bool = False
    """Whether every sequence of moves was tried."""
    options: dict[int, list[Option]]


class Search:
    def __init__(
        self, states: RowStates, movable: Movable, goal: Goal, banned: Collection[tuple[int, int]], patience: int
    ) -> None:
        self._states, self._goal, self._units = states, goal, movable.units
        self._mover, self._patience = Mover(states, movable, goal, banned), patience
        self._on_row = movable.on_row()
        self._rows = goal.rows().tolist()

    def found(self) -> Found:
        is_small = len(self._rows) <= FEW_ROWS
        known = options.found(self._goal, self._units, self._on_row, thorough=is_small)
        best, at_least, exhausted = self._by_options(known), 1, False
        if is_small and self._patience > 0:
            best, at_least, exhausted = self._shortest(best)
        if exhausted and self._mover.left_out:
            # A proof has to count the moves that may come out right.
            self._mover.hopeful = True
            _, _, exhausted = self._shortest(None)
        reserved = {row: self._goal.counted(row, best.state(row)) for row in self._rows} if best is not None else {}
        return Found(
            board=best,
            reserved={row: gain for row, gain in reserved.items() if gain},
            at_least=at_least,
            exhausted=exhausted,
            options=known,
        )

    def _by_options(self, known: dict[int, list[Option]]) -> Board | None:
        banned: set[Option] = set()
        for _ in range(MOST_ROUNDS):
            chosen = options.chosen(known, self._goal.wanted, banned)
            if chosen is None:
                return None
            board, failed = self._cleared(chosen)
            if boards.total(self._goal, board, self._rows) >= self._goal.wanted:
                return board
            # Without a failure, pods that landed took room that the rows without moves had.
            banned |= failed or {max(chosen, key=lambda each: (each.cost, each.row))}
        return None

    def _cleared(self, chosen: list[Option]) -> tuple[Board, set[Option]]:
        """The board after the units of the options have moved, and the options of which some unit finds no place."""
        reserved = {
            option.row: Reserved(option.gain, options.gone(self._units, option.blocking, option.row))
            for option in chosen
        }
        board, moved, failed = START, set[int](), set[Option]()
        for option in sorted(chosen, key=lambda each: (each.cost, each.row)):
            after: Board | None = board
            for number in sorted(option.blocking - moved, key=lambda number: -self._size(self._units[number])):
                after = self._mover.moved(after, number, reserved) if after is not None else None
            if after is None:
                failed.add(option)
                del reserved[option.row]
            else:
                board = after
                moved |= option.blocking
        return board, failed

    def _size(self, unit: Unit) -> int:
        """Large pods first: they find a place less easily."""
        return sum(
            amount for each in unit.members for _, amount in self._states.kinds[each.kind].table.totals.pairs[:1]
        )

    def _shortest(self, best: Board | None) -> tuple[Board | None, int, bool]:
        """A board with the goal that is as few evictions away as possible, how many every one needs, and whether there
        is nothing left to try. Boards are looked at in the order of their distance."""
        waiting: dict[int, list[Board]] = {0: [START]}
        seen, looked_at = {self._place(START)}, 0
        while waiting:
            distance = min(waiting)
            if best is not None and distance + 1 >= self._evictions(best):
                return best, self._evictions(best), False
            for board in waiting.pop(distance):
                for unit in self._units:
                    for after in self._mover.ways(board, unit.number):
                        looked_at += 1
                        if looked_at > self._patience:
                            return best, distance + 1, False
                        key = self._place(after)
                        if key in seen:
                            continue
                        seen.add(key)
                        if boards.total(self._goal, after, self._rows) < self._goal.wanted:
                            waiting.setdefault(distance + unit.pods, []).append(after)
                        elif best is None or self._cost(after) < self._cost(best):
                            best = after
        return best, self._evictions(best) if best is not None else 1, best is None

    def _place(self, board: Board) -> object:
        """Equal for boards on which equal pods have equal zones."""
        return frozenset(
            (row, self._states.looks(row, state)) for row, state in board.states.items() if state != AS_IT_IS
        )

    def _evictions(self, board: Board) -> int:
        return sum(self._units[move.unit].pods for move in board.moves)

    def _cost(self, board: Board) -> int:
        return sum(self._units[move.unit].cost for move in board.moves)
