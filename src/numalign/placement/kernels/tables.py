"""Rows of a block as `arrays` walks through them: what a plan asks about, gathered column by column when first needed.

Charging changes the gathered copies, never the block. Rows that are decided are dropped by `keep`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numalign.placement.kernels.block import RowBlock, Rows
from numalign.placement.kernels.plan import Plan

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]


def at_zones(by_zone: NDArray[Any], zones: Numbers) -> NDArray[Any]:
    """From each row the value of one zone."""
    return by_zone[np.arange(len(by_zone)), zones]


def neighbours(rows: Rows) -> slice | Rows:
    """Neighbours are read in place, which is several times faster than picking rows one by one."""
    if len(rows) == 0 or rows[-1] - rows[0] != len(rows) - 1 or not (np.diff(rows) == 1).all():
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1)


class Table:
    """By place: [row, zone] or [row] arrays over the rows that are still to be decided."""

    def __init__(self, block: RowBlock, rows: Rows, plan: Plan) -> None:
        self.block = block
        self.plan = plan
        self.rows = rows
        self.numbers: NDArray[np.intp] = np.arange(len(rows))
        """Which of the rows asked about are left."""
        self.live: Truths = np.ones(len(rows), np.bool_)
        self._places: Numbers = np.arange(len(rows))
        self._where = neighbours(rows)
        self._gathered: dict[tuple[str, int], NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def keep(self, kept: NDArray[np.intp]) -> None:
        self.rows, self.numbers, self.live = self.rows[kept], self.numbers[kept], self.live[kept]
        self._places, self._where = self._places[: len(kept)], self.rows
        for key, values in self._gathered.items():
            self._gathered[key] = values[kept]

    # What an ask names, as (place, amount)

    def asked(self, ask: int) -> Iterator[tuple[int, int]]:
        if self.plan.cpus[ask]:
            yield 0, self.plan.cpus[ask]
        yield from self.memory(ask)
        yield from self.devices(ask)

    def memory(self, ask: int) -> Iterator[tuple[int, int]]:
        return self._items(self.plan.memory[ask], self.plan.devices[ask])

    def devices(self, ask: int) -> Iterator[tuple[int, int]]:
        return self._items(self.plan.devices[ask], self.plan.memory[ask + 1])

    def _items(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        return zip(self.plan.places_asked[first:end], self.plan.amounts[first:end], strict=True)

    # Numbers

    def free(self, place: int) -> Numbers:
        return self._found("free", place, lambda: np.maximum(self._column(self.block.free, place), 0))

    def size(self, place: int) -> Numbers:
        return self._found("size", place, lambda: self._column(self.block.size, place))

    def allocatable_at(self, place: int, zones: Numbers) -> Numbers:
        return np.asarray(self.block.allocatable[self.rows, zones, self.plan.columns[place]])

    def allocatable(self, place: int) -> Numbers:
        return self._found("allocatable", place, lambda: self._column(self.block.allocatable, place).sum(axis=1))

    def totals(self, place: int) -> Numbers:
        """Free on the row as a whole, devices without a zone included."""
        homeless = self.homeless(place) if self.is_device(place) else 0
        return self._found("totals", place, lambda: self.free(place).sum(axis=1) + homeless)

    def homeless(self, place: int) -> Numbers:
        return self._found("homeless", place, lambda: np.maximum(self._cell(self.block.homeless, place), 0))

    def homeless_size(self, place: int) -> Numbers:
        return self._found("homeless_size", place, lambda: self._cell(self.block.homeless_size, place))

    @property
    def full_core_cpus(self) -> Numbers:
        return self.block.full_core_cpus[self._where]

    def serves(self, place: int) -> Truths:
        """Whether it lies in zones of the row; of what is no device it always does."""
        return self._found("serves", place, lambda: self._serves(place))

    def _serves(self, place: int) -> Truths:
        if self.is_device(place):
            return np.asarray(np.any(self.size(place) > 0, axis=1))
        return np.ones(len(self), np.bool_)

    def is_device(self, place: int) -> bool:
        return place in self._device_places

    @cached_property
    def _device_places(self) -> frozenset[int]:
        asks = range(len(self.plan.devices))
        return frozenset(place for ask in asks for place, _ in self.devices(ask))

    def _found(self, name: str, place: int, gather: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        found = self._gathered.get((name, place))
        if found is None:
            found = self._gathered[name, place] = gather()
        return found

    def _column(self, values: Numbers, place: int) -> Numbers:
        column, zones = self.plan.columns[place], self.plan.zones
        if column >= values.shape[2]:
            return np.zeros((len(self), zones), np.int64)
        return values[self._where, :zones, column]

    def _cell(self, values: Numbers, place: int) -> Numbers:
        column = self.plan.columns[place]
        return values[self._where, column] if column < values.shape[1] else np.zeros(len(self), np.int64)

    # Questions about an ask

    def in_zones(self, ask: int) -> Truths:
        if self.plan.cpus[ask] or self.plan.memory[ask] < self.plan.devices[ask]:
            return np.ones(len(self), np.bool_)
        found = np.zeros(len(self), np.bool_)
        for place, _ in self.devices(ask):
            found |= self.serves(place)
        return found

    def fits(self, ask: int) -> Truths:
        """By row and zone: whether everything that lies in zones fits. Twin of `simple.holds`."""
        found = self.memory_fits(ask)
        if self.plan.cpus[ask]:
            found &= self.free(0) >= self.plan.cpus[ask]
        for place, amount in self.devices(ask):
            room = self.free(place) >= amount
            serves = self.serves(place)
            found &= room if serves.all() else room | ~serves[:, None]
        return found

    def memory_fits(self, ask: int) -> Truths:
        if self.plan.memory[ask] == self.plan.devices[ask]:
            return np.ones((len(self), self.plan.zones), np.bool_)
        found = self._ungrouped().copy()
        for place, amount in self.memory(ask):
            found &= self.free(place) >= amount
        return found

    def memory_counts(self, ask: int) -> Truths:
        """Twin of `simple.memory_counts`."""
        somewhere = np.any(self.memory_fits(ask), axis=1)
        return np.asarray(somewhere if self.plan.as_a_whole else somewhere | self._ungrouped().all(axis=1))

    def _ungrouped(self) -> Truths:
        own = 1 << np.arange(self.plan.zones)
        return self._found("ungrouped", 0, lambda: self.block.cells[self._where, : self.plan.zones] == own)

    def needs_one_zone(self, ask: int) -> Truths:
        """Twin of `simple.needs_one_zone`."""
        found = np.zeros(len(self), np.bool_)
        if self.plan.cpus[ask]:
            found |= (self.size(0) >= self.plan.cpus[ask]).any(axis=1)
        for place, amount in self.devices(ask):
            found |= (self.size(place) >= amount).any(axis=1)
        return found & self._ungrouped().all(axis=1) if self.plan.memory[ask] < self.plan.devices[ask] else found

    def charge(self, place: int, zones: Numbers, amounts: Numbers) -> None:
        self.free(place)[self._places, zones] -= amounts
