"""The cluster as arrays: a node is a row, a resource a column.

`engine` writes rows as facts come in, `verdicts` and kernels read them. No other module keeps them. Rows are
reused after a node is gone, arrays grow by doubling in every direction, and every change of a row is logged so that
readers need not look at the others. Values beyond `LARGEST` are cut to it: sums over zones then stay within int64."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.placement.columns.changelog import ChangeLog, Rows
from numalign.placement.columns.nodefacts import Groups, RowFacts, Stock
from numalign.placement.columns.noderules import MOST_ZONES, NodeRules
from numalign.placement.columns.resources import Resources

LARGEST: Final = 1 << 52
"""4 PiB, or as many CPUs; a hundred times the sum over eight zones is still an int64."""
VACANT: Final = -1
UNREPORTED: Final = -2
"""Kind of a row whose node has no report."""
NONE_PENDING, SEVERAL_SHAPES, NOT_EXACT = -1, -2, -3
"""Pending shape of a row: no pod is pending; several shapes, each certain of its zones; some are not certain."""

Amounts = NDArray[np.int64]
ITEM: Final = 8
"""Bytes of an amount."""
SHELF: Final = 1024
"""So many names are put side by side."""
BLOCK: Final = 64
"""Rows by which the tables beside the columns grow."""
FIRST_ROWS, FIRST_ZONES, FIRST_COLUMNS, FIRST_STOCKS = 256, 2, 8, 8
BY_ZONE: Final = ("free", "settled", "size", "allocatable")
BY_COLUMN: Final = ("homeless", "homeless_size", "offered", "spare")
BY_STOCK: Final = ("size", "allocatable", "homeless_size")
NO_STOCK: Final = 0
"""The stock of a row whose node has no report."""
PLAIN: Final = {
    "kind": np.int32,
    "stock": np.int32,
    "busy": np.uint8,
    "full_core_cpus": np.int64,
    "pods": np.int32,
    "most_pods": np.int32,
    "pending_shape": np.int32,
}
FLAGS: Final = ("loose", "split_known")
APART: Final = tuple(1 << zone for zone in range(MOST_ZONES))
"""Every zone by itself, as far as memory goes."""


class FreeRow(Struct, frozen=True, kw_only=True):
    """What changes on a node while its report stands; amounts zone by zone, in each by column."""

    free: Sequence[int]
    settled: Sequence[int]
    homeless: Sequence[int]
    """By column; as many as a zone has."""
    groups: Groups | None = None
    full_core_cpus: int = -1
    split_known: bool = False
    loose: bool = False
    pending_shape: int = NOT_EXACT


class Flat(NamedTuple):
    """Arrays of the columns as Python reads and writes single numbers fastest, each in one line.

    What lies by zone is at row * span + zone * width + column, cells at row * zones + zone, what lies by column at
    row * width + column; what lies by stock has the row's stock in place of the row."""

    zones: int
    width: int
    span: int
    free: memoryview
    settled: memoryview
    cells: memoryview
    homeless: memoryview
    homeless_size: memoryview
    offered: memoryview
    spare: memoryview
    kind: memoryview
    stock: memoryview
    loose: memoryview
    pending_shape: memoryview
    full_core_cpus: memoryview
    split_known: memoryview
    busy: memoryview
    pods: memoryview
    most_pods: memoryview


class Columns:
    """Numbers by [row, zone position, column], [row, column] and [row].

    What a node has at all is kept once for all nodes that have the same: `BY_STOCK` arrays have a stock in place of the
    row. A cluster has few of them, so that kernels find them in the processor's cache."""

    free: Amounts
    """What is free with every known pod charged."""
    settled: Amounts
    """The same without pods that are bound but in no report yet."""
    stock: NDArray[np.int32]
    size: Amounts
    allocatable: Amounts
    homeless: Amounts
    """Free devices that lie in no zone, every known pod charged."""
    homeless_size: Amounts
    offered: Amounts
    """Node allocatable, cpu in thousandths like everything that counts for the node as a whole."""
    spare: Amounts
    """The same less what pods request: of the two, kernels read only this. Negative where pods request more."""
    kind: NDArray[np.int32]
    busy: NDArray[np.uint8]
    cells: NDArray[np.uint8]
    full_core_cpus: Amounts
    """Free CPUs on cores without a reserved one; negative: not known."""
    pods: NDArray[np.int32]
    most_pods: NDArray[np.int32]
    pending_shape: NDArray[np.int32]
    """The shape of the pending pods, or `NONE_PENDING`, `SEVERAL_SHAPES`, `NOT_EXACT`."""
    loose: NDArray[np.bool_]
    """Rows that kernels cannot decide from numbers alone."""
    split_known: NDArray[np.bool_]

    def __init__(self) -> None:
        self.resources = Resources()
        self.log = ChangeLog()
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.kinds: list[NodeRules] = []
        self._kind_numbers: dict[NodeRules, int] = {}
        self._stock_numbers: dict[Stock, int] = {}
        self._stocks: list[Stock] = [Stock()]
        """By number; the first one is that of rows without a report."""
        self._stock_uses = [0]
        self._unused_stocks: list[int] = []
        self.room = BLOCK
        """How long tables beside the columns are: as there are rows, in whole blocks."""
        self._vacant: list[int] = []
        self._every_row: Rows = np.zeros(0, np.int32)
        self._allocate(FIRST_ROWS, FIRST_ZONES, FIRST_COLUMNS)
        self.flat = self._flattened()
        """The same as long as no array is replaced by a larger one."""

    def row(self, name: str) -> int:
        """The node's row, a new one if it has none."""
        row = self.rows.get(name)
        if row is None:
            row = self._vacant.pop() if self._vacant else self._next_row()
            self.rows[name], self.names[row] = row, name
            self._clear(row)
            self.kind[row] = UNREPORTED
            self.log.append(row)
        return row

    def drop(self, name: str) -> None:
        row = self.rows.pop(name)
        self.names[row] = ""
        self._clear(row)
        self._vacant.append(row)
        self.log.append(row)

    def describe(self, row: int, facts: RowFacts) -> None:
        """Take over what a report says about a node, except what is free."""
        self._make_room(min(len(facts.rules.zones), MOST_ZONES))
        self._take_stock(row, self._stock(facts.supplies.stock))
        self.kind[row] = self._kind(facts.rules)
        self.log.append(row)

    def undescribe(self, row: int) -> None:
        """There is no report any more, or still none."""
        if self.kind[row] == UNREPORTED and not self.loose[row]:
            return
        self.kind[row] = UNREPORTED
        self.loose[row] = False
        self.log.append(row)

    def set_free(self, row: int, state: FreeRow) -> None:
        """What is free now; columns that are not mentioned have nothing."""
        width = len(state.homeless)
        zones = min(len(state.free) // width, MOST_ZONES)
        self._make_room(zones)
        self.ensure_columns(width)
        flat, used = self.flat, zones * width
        table, start, end = _layout(zones, width, flat.width), row * flat.span, row * flat.span + zones * flat.width
        table.pack_into(flat.free, start * ITEM, *_within(state.free[:used]))
        # Where no pod is on its way, both are the same.
        if state.settled is state.free:
            flat.settled[start:end] = flat.free[start:end]
        else:
            table.pack_into(flat.settled, start * ITEM, *_within(state.settled[:used]))
        _layout(1, width, width).pack_into(flat.homeless, row * flat.width * ITEM, *_within(state.homeless))
        cells = state.groups.cells if state.groups else APART
        flat.cells[row * flat.zones : row * flat.zones + zones] = _cells(cells, zones)
        flat.busy[row] = state.groups.busy & 0xFF if state.groups else 0
        flat.full_core_cpus[row] = min(state.full_core_cpus, LARGEST)
        flat.split_known[row] = state.split_known
        flat.loose[row] = state.loose
        flat.pending_shape[row] = state.pending_shape
        self.log.append(row)

    def set_totals(self, row: int, offered: Mapping[str, int], most_pods: int) -> None:
        # The columns first: making room for them replaces the arrays.
        columns = {self.column(name): min(max(amount, 0), LARGEST) for name, amount in offered.items()}
        self.spare[row] -= self.offered[row]
        self.offered[row] = 0
        for column, amount in columns.items():
            self.offered[row, column] = amount
        self.spare[row] += self.offered[row]
        self.most_pods[row] = most_pods
        self.log.append(row)

    def charge_totals(self, row: int, amounts: Sequence[tuple[int, int]], pods: int) -> None:
        """Add to what pods request of the node as a whole; negative amounts and counts take away."""
        flat = self.flat
        spare, first = flat.spare, row * flat.width
        for column, amount in amounts:
            spare[first + column] -= amount if -LARGEST <= amount <= LARGEST else _cut((amount,))[0]
        flat.pods[row] += pods
        self.log.append(row)

    def requested(self, row: int, column: int) -> int:
        """What pods request of the node as a whole."""
        return int(self.offered[row, column] - self.spare[row, column])

    def column(self, name: str) -> int:
        column = self.resources.column(name)
        if column >= self.free.shape[2]:
            self.ensure_columns(column + 1)
        return column

    def ensure_columns(self, width: int) -> None:
        """Programs name columns that no report has shown yet; every row has room for them all the same."""
        rows, zones, columns = self.free.shape
        if width > columns:
            self._grow(rows, zones, _doubled(columns, width))

    @property
    def height(self) -> int:
        """Rows in use or vacant; arrays are longer."""
        return len(self.names)

    @property
    def vacant(self) -> tuple[int, ...]:
        """Rows of no node, in the order in which they became so: the last is used next."""
        return tuple(self._vacant)

    @property
    def every_row(self) -> Rows:
        """The numbers of all rows, the same object as long as there are no more of them. Not to be written to."""
        if len(self._every_row) != len(self.names):
            self._every_row = np.arange(len(self.names), dtype=np.int32)
        return self._every_row

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def rules(self, row: int) -> NodeRules | None:
        number = int(self.kind[row])
        return self.kinds[number] if number >= 0 else None

    def _kind(self, rules: NodeRules) -> int:
        number = self._kind_numbers.get(rules)
        if number is None:
            number = self._kind_numbers[rules] = len(self.kinds)
            self.kinds.append(rules)
        return number

    def _stock(self, stock: Stock) -> int:
        """Its number, a new one if it has none."""
        number = self._stock_numbers.get(stock)
        if number is not None:
            return number
        columns = list(map(self.column, stock.names))
        if not self._unused_stocks:
            self._unused_stocks.append(len(self._stocks))
            self._stocks.append(stock)
            self._stock_uses.append(0)
        number = self._unused_stocks.pop()
        self._stocks[number], self._stock_numbers[stock] = stock, number
        if number == len(self.size):
            del self.flat
            for name in BY_STOCK:
                setattr(self, name, np.concatenate((getattr(self, name), np.zeros_like(getattr(self, name)))))
            self.flat = self._flattened()
        for name in BY_STOCK:
            getattr(self, name)[number] = 0
        if columns:
            zones = min(len(stock.size) // len(columns), MOST_ZONES)
            self._make_room(zones)
            self.size[number][:zones, columns] = _flat(stock.size, len(columns))[:zones]
            self.allocatable[number][:zones, columns] = _flat(stock.allocatable, len(columns))[:zones]
            self.homeless_size[number, columns] = _cut([max(each, 0) for each in stock.homeless_size])
        return number

    def _take_stock(self, row: int, number: int) -> None:
        """One that no row has any more is forgotten."""
        before, self.stock[row] = self.stock.item(row), number
        self._stock_uses[number] += 1
        self._stock_uses[before] -= 1
        if before != NO_STOCK and not self._stock_uses[before]:
            del self._stock_numbers[self._stocks[before]]
            self._unused_stocks.append(before)

    def _next_row(self) -> int:
        rows, zones, columns = self.free.shape
        if len(self.names) == rows:
            self._grow(rows * 2, zones, columns)
        if len(self.names) % SHELF == 0:
            # Names come with objects that are strewn over memory; a decision that names a node would wait for it.
            self.names[-SHELF:] = [(name + " ")[:-1] for name in self.names[-SHELF:]]
        self.names.append("")
        if len(self.names) > self.room:
            self.room += BLOCK
        return len(self.names) - 1

    def _make_room(self, zones: int) -> None:
        rows, there, columns = self.free.shape
        if zones > there:
            self._grow(rows, _doubled(there, zones), columns)

    def _clear(self, row: int) -> None:
        self._take_stock(row, NO_STOCK)
        for name in (*BY_ZONE, *BY_COLUMN, *PLAIN, *FLAGS, "cells"):
            if name not in BY_STOCK:
                getattr(self, name)[row] = 0
        self.kind[row] = VACANT

    def _grow(self, rows: int, zones: int, columns: int) -> None:
        del self.flat
        # One array at a time: the old one is free before the next is made, which halves the peak.
        for name in (*BY_ZONE, *BY_COLUMN, *PLAIN, *FLAGS, "cells"):
            old = getattr(self, name)
            new = self._made(name, len(old) if name in BY_STOCK else rows, zones, columns)
            new[tuple(slice(length) for length in old.shape)] = old
            setattr(self, name, new)
        self.flat = self._flattened()

    def _flattened(self) -> Flat:
        _, zones, width = self.free.shape
        lines = (getattr(self, name).reshape(-1).data for name in Flat._fields[3:])
        return Flat(zones, width, zones * width, *lines)

    def _allocate(self, rows: int, zones: int, columns: int) -> None:
        for name in (*BY_ZONE, *BY_COLUMN, *PLAIN, *FLAGS, "cells"):
            setattr(self, name, self._made(name, FIRST_STOCKS if name in BY_STOCK else rows, zones, columns))

    @staticmethod
    def _made(name: str, rows: int, zones: int, columns: int) -> NDArray[np.generic]:
        if name in BY_ZONE:
            return np.zeros((rows, zones, columns), np.int64)
        if name in BY_COLUMN:
            return np.zeros((rows, columns), np.int64)
        if name == "cells":
            return np.zeros((rows, zones), np.uint8)
        if name in FLAGS:
            return np.zeros(rows, np.bool_)
        return np.full(rows, VACANT if name == "kind" else 0, PLAIN[name])


def _doubled(there: int, wanted: int) -> int:
    while there < wanted:
        there *= 2
    return there


def _cut(amounts: Sequence[int]) -> list[int]:
    return [min(max(amount, -LARGEST), LARGEST) for amount in amounts]


def _within(amounts: Sequence[int]) -> Sequence[int]:
    return _cut(amounts) if amounts and (min(amounts) < -LARGEST or max(amounts) > LARGEST) else amounts


def _flat(amounts: Sequence[int], width: int) -> Amounts:
    return np.array(_within(amounts), np.int64).reshape(-1, width)


@lru_cache(maxsize=1 << 8)
def _layout(zones: int, width: int, room: int) -> struct.Struct:
    """So many zones of so many columns, where there is room for more of them, which have nothing."""
    return struct.Struct(f"{width}q{ITEM * (room - width)}x" * zones)


@lru_cache(maxsize=1 << 12)
def _cells(cells: tuple[int, ...], zones: int) -> bytes:
    return bytes([cell & 0xFF for cell in cells[:zones]])
