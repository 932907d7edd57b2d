"""Resource names as column numbers.

Arrays know resources by number only; `columns` keeps one `Resources` for the whole cluster. CPUs
and memory come first and are always there, so that a cluster without reports has columns too. A number, once given,
never changes."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from numalign.api.caches import BoundedCache
from numalign.api.objects import resourcenames

CPU: Final = 0
MEMORY: Final = 1
ORDERS: Final = 1024
"""Different orders of names that are remembered; nodes of one make have the same."""

PickerKey = tuple[tuple[str, ...], int, int]
"""Names, how many columns there are, and how many amounts."""


class Arrangement(NamedTuple):
    """Where columns are among names in some order."""

    places: Mapping[int, int]
    """By column, of those that have one."""
    width: int
    """How many columns there are, those without a name among these included."""
    is_straight: bool
    """Whether the names are those of all columns, in their order."""


class Resources:
    """The names seen so far, in the order of their columns."""

    def __init__(self) -> None:
        self.names: list[str] = [resourcenames.CPU, resourcenames.MEMORY]
        self._columns = {name: column for column, name in enumerate(self.names)}
        self.memory = frozenset({MEMORY})
        """Columns of memory and hugepages."""
        self._arranged = BoundedCache[tuple[str, ...], Arrangement](ORDERS)
        self._pickers: BoundedCache[PickerKey, itemgetter[tuple[int, ...]]] = BoundedCache(ORDERS)

    def column(self, name: str) -> int:
        """The column of a resource, a new one if it was never seen."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = len(self.names)
            self.names.append(name)
            if resourcenames.is_hugepages(name):
                self.memory |= {found}
        return found

    def arranged(self, names: tuple[str, ...]) -> Arrangement:
        """These names, which all get a column, among all that there are by now."""
        found = self._arranged.get(names)
        if found is None or found.width != len(self.names):
            places = {self.column(name): place for place, name in enumerate(names)}
            made = Arrangement(places, len(self.names), names == tuple(self.names))
            found = self._arranged.keep(names, made)
        return found

    def by_column(self, names: tuple[str, ...], amounts: tuple[int, ...]) -> list[int]:
        """Amounts that are listed zone by zone and in each in the order of these names, in each by column instead."""
        places, width, is_straight = self.arranged(names)
        if is_straight:
            return list(amounts)
        pick = self._pickers.get((names, width, len(amounts)))
        if pick is None:
            nothing, zones = len(amounts), range(0, len(amounts), len(names))
            spots = [zone + places[each] if each in places else nothing for zone in zones for each in range(width)]
            pick = self._pickers.keep((names, width, len(amounts)), itemgetter(*spots))
        return list(pick((*amounts, 0)))

    def known(self, name: str) -> int | None:
        return self._columns.get(name)

    def __len__(self) -> int:
        return len(self.names)
