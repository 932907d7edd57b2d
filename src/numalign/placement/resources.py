"""Resource names as column numbers.

Arrays know resources by number only; `columns` keeps one `Resources` for the whole cluster and everybody asks it. CPUs
and memory come first and are always there, so that a cluster without reports has columns too. A number, once given,
never changes."""

from __future__ import annotations

from typing import Final

from numalign.api import resourcenames

CPU: Final = 0
MEMORY: Final = 1


class Resources:
    """The names seen so far, in the order of their columns."""

    def __init__(self) -> None:
        self.names: list[str] = [resourcenames.CPU, resourcenames.MEMORY]
        self._columns = {name: column for column, name in enumerate(self.names)}

    def column(self, name: str) -> int:
        """The column of a resource, a new one if it was never seen."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = len(self.names)
            self.names.append(name)
        return found

    def known(self, name: str) -> int | None:
        return self._columns.get(name)

    def __len__(self) -> int:
        return len(self.names)
