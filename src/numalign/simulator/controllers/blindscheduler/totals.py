"""The nodes' totals as arrays: what each offers, what its pods take, and who still has room.

`scheduling` charges and releases pods one at a time; a question about all nodes is a few array operations. A pod may be
bound to a node that is not known yet: it counts from the moment the node is."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from numalign.simulator.controllers.blindscheduler.asking import Ask, Port
from numalign.simulator.controllers.framework.views import Key

PODS: Final = "pods"
FIRST_ROWS: Final = 64
LARGEST: Final = 2**53
"""Beyond any real amount, and small enough that sums and percentages stay in 64 bits."""

Rows = NDArray[np.bool_]
Amounts = NDArray[np.int64]


class Totals:
    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._free: list[int] = []
        self._columns: dict[str, int] = {"cpu": 0, "memory": 1}
        self._offered = np.zeros((FIRST_ROWS, 4), np.int64)
        self._taken = np.zeros((FIRST_ROWS, 4), np.int64)
        self._scored = np.zeros((FIRST_ROWS, 2), np.int64)
        self._pods = np.zeros(FIRST_ROWS, np.int64)
        self._most_pods = np.zeros(FIRST_ROWS, np.int64)
        self.there = np.zeros(FIRST_ROWS, np.bool_)
        self._held: dict[str, dict[Key, Ask]] = {}
        self.generation = 0
        """Grows with every change."""

    def __len__(self) -> int:
        return len(self.rows)

    def put(self, node: str, offered: dict[str, int]) -> bool:
        """Whether anything is different now."""
        self.generation += 1
        row = self.rows.get(node)
        is_new = row is None
        if row is None:
            row = self._new_row(node)
        before = self._offered[row].copy(), int(self._most_pods[row])
        self._offered[row] = 0
        for name, amount in offered.items():
            if name != PODS:
                column = self._column(name)
                self._offered[row, column] = min(amount, LARGEST)
        self._most_pods[row] = offered.get(PODS, 0)
        width = len(before[0])
        grown = bool(self._offered[row, width:].any())
        same = not grown and np.array_equal(before[0], self._offered[row, :width])
        return is_new or not same or before[1] != self._most_pods[row]

    def drop(self, node: str) -> None:
        self.generation += 1
        row = self.rows.pop(node, None)
        if row is not None:
            self.there[row] = False
            self._free.append(row)

    def name_of(self, row: int) -> str:
        return self._names[row]

    def charge(self, node: str, pod: Key, ask: Ask) -> None:
        self.release(node, pod)
        self._held.setdefault(node, {})[pod] = ask
        if node in self.rows:
            self._add(self.rows[node], ask, 1)

    def release(self, node: str, pod: Key) -> bool:
        """Whether it was charged there."""
        held = self._held.get(node, {})
        ask = held.pop(pod, None)
        if ask is None:
            return False
        if not held:
            del self._held[node]
        if node in self.rows:
            self._add(self.rows[node], ask, -1)
        return True

    def room(self, ask: Ask) -> Rows:
        fits: Rows = self._pods < self._most_pods
        for name, amount in ask.amounts:
            fits &= self.left(name) >= amount
        return fits

    def left(self, name: str) -> Amounts:
        """How much of a resource is left, by row."""
        column = self._columns.get(name)
        if column is None:
            return np.zeros(len(self.there), np.int64)
        return self._offered[:, column] - self._taken[:, column]

    def offered(self, name: str) -> Amounts:
        column = self._columns.get(name)
        return self._offered[:, column] if column is not None else np.zeros(len(self.there), np.int64)

    def crowded(self) -> Rows:
        """Nodes that may not have another pod, whatever it asks for."""
        return self._pods >= self._most_pods

    def least_allocated(self, ask: Ask) -> Amounts:
        """0 to 100 by row: the mean share of CPU and memory that would be left (kube-scheduler spec 1.9)."""
        capacity = self._offered[:, :2]
        wanted = self._scored + np.array(ask.scored, np.int64)
        shares = np.where(wanted > capacity, 0, (capacity - wanted) * 100 // np.maximum(capacity, 1))
        weights = (capacity > 0).sum(axis=1)
        scores: Amounts = np.where(capacity > 0, shares, 0).sum(axis=1) // np.maximum(weights, 1)
        return scores

    def ports(self, node: str) -> Iterator[Port]:
        return (port for ask in self._held.get(node, {}).values() for port in ask.ports)

    def _add(self, row: int, ask: Ask, sign: int) -> None:
        self.generation += 1
        for name, amount in ask.amounts:
            column = self._column(name)
            self._taken[row, column] += sign * min(amount, LARGEST)
        self._scored[row] += sign * np.array(ask.scored, np.int64)
        self._pods[row] += sign

    def _new_row(self, node: str) -> int:
        if not self._free and len(self.rows) == len(self.there):
            self._grow()
        row = self._free.pop() if self._free else len(self.rows)
        self.rows[node] = row
        self._names[row] = node
        self.there[row] = True
        for array in (self._offered, self._taken, self._scored):
            array[row] = 0
        self._pods[row] = 0
        for ask in self._held.get(node, {}).values():
            self._add(row, ask, 1)
        return row

    def _grow(self) -> None:
        self._offered, self._taken, self._scored = map(_doubled, (self._offered, self._taken, self._scored))
        self._pods, self._most_pods = _doubled(self._pods), _doubled(self._most_pods)
        self.there = np.concatenate([self.there, np.zeros_like(self.there)])

    def _column(self, name: str) -> int:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self._columns)
            if column >= self._offered.shape[1]:
                wider = ((0, 0), (0, self._offered.shape[1]))
                self._offered, self._taken = np.pad(self._offered, wider), np.pad(self._taken, wider)
        return column


def _doubled(array: Amounts) -> Amounts:
    return np.concatenate([array, np.zeros_like(array)])
