"""What a plan is for: pods that fit, free zones, or an empty node.

`options` asks which pods of a row are in the way, `search` how much of the goal a row has. All three goals are counted
row by row, so that one search serves them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from numalign.plan.defrag.movable import Unit
from numalign.plan.defrag.rowstates import RowState, RowStates

MOST_TOGETHER: Final = 6
"""Pods of a row of which every set is tried."""
Blocking = frozenset[int]
"""Numbers of units to take away."""


class Goal(Protocol):
    @property
    def text(self) -> str:
        """As the user wrote it."""

    @property
    def wanted(self) -> int: ...

    def counted(self, row: int, state: RowState) -> int:
        """How much of the goal there is on the row."""

    def purpose(self, gain: int) -> str:
        """Why pods leave a row that is to have so much of the goal."""

    def rows(self) -> NDArray[np.intp]:
        """Rows that may contribute."""

    def blocking(self, row: int, units: Sequence[Unit], *, thorough: bool) -> Iterable[Blocking]:
        """Sets of units of the row whose end may gain something. `thorough`: every set of a few units."""


class FitPods:
    """So many pods of one kind are admitted."""

    def __init__(self, states: RowStates, kind: int, wanted: int, text: str) -> None:
        self._states, self.kind, self.wanted, self.text = states, kind, wanted, text

    def counted(self, row: int, state: RowState) -> int:
        return self._states.counted(row, state, self.kind)

    def purpose(self, gain: int) -> str:
        return f"has room for {gain:,} of the pods then"

    def rows(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._states.kinds[self.kind].open)

    def blocking(self, row: int, units: Sequence[Unit], *, thorough: bool) -> Iterable[Blocking]:
        return _sets(self._states, row, units, thorough=thorough)


class FreeZones:
    """So many zones are free of exclusive CPUs, of memory that is pinned, and of devices in use."""

    def __init__(self, states: RowStates, wanted: int, text: str) -> None:
        self._states, self.wanted, self.text = states, wanted, text

    def counted(self, row: int, state: RowState) -> int:
        return self._states.free_zones(row, state)

    def purpose(self, gain: int) -> str:
        return "has a free zone then" if gain == 1 else f"has {gain:,} free zones then"

    def rows(self) -> NDArray[np.intp]:
        return self._states.rows.reported

    def blocking(self, row: int, units: Sequence[Unit], *, thorough: bool) -> Iterable[Blocking]:
        return _sets(self._states, row, units, thorough=thorough)


class EmptyNode:
    """A node has no pods but those that belong to it."""

    wanted: Final = 1

    def __init__(self, row: int, leaving: frozenset[str], text: str) -> None:
        """`leaving`: uids of all pods of the row that do not belong to the node."""
        self._row, self.leaving, self.text = row, leaving, text

    def counted(self, row: int, state: RowState) -> int:
        return int(row == self._row and not state.there and self.leaving <= state.gone)

    def purpose(self, gain: int) -> str:
        return "is to be empty"

    def rows(self) -> NDArray[np.intp]:
        return np.array([self._row], np.intp)

    def blocking(self, row: int, units: Sequence[Unit], *, thorough: bool) -> Iterable[Blocking]:
        return [frozenset(unit.number for unit in units)]


def _sets(states: RowStates, row: int, units: Sequence[Unit], *, thorough: bool) -> Iterable[Blocking]:
    """Every set of a few units; of many, those of each zone, and all."""
    if thorough and len(units) <= MOST_TOGETHER:
        for size in range(1, len(units) + 1):
            yield from (frozenset(unit.number for unit in some) for some in combinations(units, size))
        return
    held = states.held(row)
    masks = {unit.number: _union(held.get(each.uid, 0) for each in unit.members) for unit in units}
    widest = max((mask.bit_length() for mask in masks.values()), default=0)
    found = [frozenset(number for number, mask in masks.items() if mask >> zone & 1) for zone in range(widest)]
    yield from dict.fromkeys(each for each in (*found, frozenset(masks)) if each)


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
