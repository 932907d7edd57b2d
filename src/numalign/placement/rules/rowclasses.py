"""Properties of nodes as small integers: rows with equal values share a class.

`ClusterState` keeps `RowClasses` for taints, for each label key that a plugin has asked about, and more.
`RowClasses.table` evaluates a function once per class instead of once per row; unused classes are reused.
`NodeLabels` creates the classes of a key at its first use; a topology domain is such a class. `RowTable` keeps
numbers that depend on node totals and recomputes only rows that the change log of `totals` names."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from numalign.api.caches import LruCache
from numalign.placement.columns.changelog import ChangeLog

T = TypeVar("T", bound=Hashable)

ABSENT: Final = 0
"""The class of rows that have no value."""
MOST_TABLES: Final = 256
FIRST_CLASSES: Final = 8

Ids = NDArray[np.int32]
Answers = NDArray[np.int32]


class RowClasses(Generic[T]):
    """`ids` has a class per row, `values` the value per class; class 0 is no value at all."""

    def __init__(self, rows: int) -> None:
        self.ids: Ids = np.zeros(rows, np.int32)
        self.values: list[T | None] = [None]
        self.generation = 0
        """Raised whenever a row changes its class."""
        self.defined: NDArray[np.int64] = np.zeros(FIRST_CLASSES, np.int64)
        """By class: the generation in which it got its value."""
        self._numbers: dict[T, int] = {}
        self._uses: list[int] = [0]
        self._unused: list[int] = []
        self._tables: LruCache[Hashable, _Table[T]] = LruCache(MOST_TABLES)

    def put(self, row: int, value: T | None) -> bool:
        """Whether that changes anything."""
        before = int(self.ids[row])
        if self.values[before] == value:
            return False
        self.generation += 1
        self.ids[row] = number = ABSENT if value is None else self._number(value)
        self._uses[number] += 1
        if before != ABSENT:
            self._release(before)
        return True

    def fill(self, values: Iterable[T | None]) -> None:
        """The value of every row, while none has one: quicker than one by one."""
        self.generation += 1
        self.ids[:] = [ABSENT if value is None else self._number(value) for value in values]
        self._uses = np.bincount(self.ids, minlength=len(self.values)).tolist()

    def number(self, value: T) -> int | None:
        """The class of that value; None when no row has it."""
        return self._numbers.get(value)

    def table(self, key: Hashable, answer: Callable[[T | None], int]) -> Answers:
        """By row, what `answer` says about its value. The key stands for the function; the array is not to be
        written to."""
        return self._tables.get(key, lambda: _Table(answer)).rows(self)

    def grow(self, rows: int) -> None:
        self.ids = grown(self.ids, rows)
        self.generation += 1

    def _number(self, value: T) -> int:
        if value in self._numbers:
            return self._numbers[value]
        if self._unused:
            number = self._unused.pop()
        else:
            number = len(self.values)
            self.values.append(None)
            self._uses.append(0)
            if number == len(self.defined):
                self.defined = grown(self.defined, 2 * number)
        self.values[number], self._numbers[value] = value, number
        self.defined[number] = self.generation
        return number

    def _release(self, number: int) -> None:
        self._uses[number] -= 1
        if self._uses[number] == 0:
            del self._numbers[self.values[number]]  # type: ignore[arg-type]  # in use until now, so it has a value
            self.values[number] = None
            self._unused.append(number)


class _Table(Generic[T]):
    """Answers by class, and gathered by row, as of a generation of the facet."""

    def __init__(self, answer: Callable[[T | None], int]) -> None:
        self._answer = answer
        self._by_class: Answers = np.array([answer(None)], np.int32)
        self._by_row: Answers | None = None
        self._generation = 0

    def rows(self, facet: RowClasses[T]) -> Answers:
        if self._by_row is None or self._generation != facet.generation:
            self._refresh(facet)
            self._by_row = self._by_class[facet.ids]
            self._by_row.flags.writeable = False
        return self._by_row

    def _refresh(self, facet: RowClasses[T]) -> None:
        classes = len(facet.values)
        if classes > len(self._by_class):
            self._by_class = grown(self._by_class, len(facet.defined))
        for number in np.flatnonzero(facet.defined[:classes] > self._generation).tolist():
            if facet.values[number] is not None:
                self._by_class[number] = self._answer(facet.values[number])
        self._generation = facet.generation


A = TypeVar("A", bound=np.generic)


def grown(array: NDArray[A], length: int) -> NDArray[A]:
    """The same numbers, with zeros behind them, along the last axis."""
    longer = np.zeros((*array.shape[:-1], length), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer


Small = NDArray[np.int32]
Rows = NDArray[np.intp]

FEW: Final = 8
"""Changed rows up to which one by one is quicker than all at once."""


class Follows(Protocol):
    """What follows from amounts; both ways give the same numbers. Equal ones share a table."""

    def __hash__(self) -> int: ...

    def rows(self, rows: Rows) -> NDArray[np.signedinteger]:
        """A new array."""

    def row(self, row: int) -> int: ...


class RowTable:
    def __init__(self, follows: Follows) -> None:
        self._follows = follows
        self._values: Small = np.zeros(0, np.int32)
        self._generation = 0

    def current(self, log: ChangeLog, every_row: Rows) -> Small:
        """For all rows. The array is not to be written to, nor kept: the next call changes it."""
        changed = log.since(self._generation) if len(self._values) == len(every_row) else None
        if changed is None:
            self._values = self._follows.rows(every_row).astype(np.int32, copy=False)
        elif len(changed) <= FEW:
            for row in changed.tolist():
                self._values[row] = self._follows.row(row)
        else:
            places = changed.astype(np.intp)
            self._values[places] = self._follows.rows(places)
        self._generation = log.generation
        seen = self._values.view()
        seen.flags.writeable = False
        return seen


MOST_KEYS: Final = 512
NO_LABELS: Final[Mapping[str, str]] = {}


class NodeLabels:
    def __init__(self, rows: int) -> None:
        self.of_row: list[Mapping[str, str]] = [NO_LABELS] * rows
        self.generation = 0
        """Raised whenever a row's labels change."""
        self._by_key: LruCache[str, RowClasses[str]] = LruCache(MOST_KEYS)

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        if self.of_row[row] == labels:
            return
        self.of_row[row] = labels
        self.generation += 1
        for key, facet in self._by_key.items():
            facet.put(row, labels.get(key))

    def column(self, key: str) -> RowClasses[str]:
        """The values of one label: ask again whenever it is needed, do not keep it."""
        return self._by_key.get(key, lambda: self._made(key))

    def grow(self, rows: int) -> None:
        self.of_row += [NO_LABELS] * (rows - len(self.of_row))
        self.generation += 1
        for _, facet in self._by_key.items():
            facet.grow(rows)

    def _made(self, key: str) -> RowClasses[str]:
        facet: RowClasses[str] = RowClasses(len(self.of_row))
        facet.fill(labels.get(key) for labels in self.of_row)
        return facet
