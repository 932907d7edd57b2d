"""The labels of all nodes, by key: which rows have which value.

Nodes have dozens of labels and pods ask for few of them, so a key becomes a facet when a rule first asks for it and
is kept up from then on. `world` writes; node affinity, spreading and pod affinity read. A topology domain is a class
of a key's facet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from numalign.api.caches import LruCache
from numalign.placement.rules.rowclasses import RowClasses

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
