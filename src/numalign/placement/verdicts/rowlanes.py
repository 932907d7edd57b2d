"""The columns once more, lane by lane, for shapes that nobody asked for before.

`evaluation` hands them to a kernel that looks at all rows. They follow the change log as verdicts do: a survey takes
over the rows that changed since the last one, and no others. In large clusters they are not kept: a survey waits for
memory there whichever way numbers lie, and these would be a fifth of all there is."""

from __future__ import annotations

from typing import Final

from numalign.placement.columns.columns import Columns
from numalign.placement.kernels import block, wholly
from numalign.placement.kernels.block import Lanes

MOST: Final = 1 << 21
"""Numbers by zone, column and row up to which they are kept: twice sixteen megabytes."""


class KeptLanes:
    """Lanes of all rows, as far as they were taken over."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._lanes: Lanes | None = None
        self._seen = 0
        """Generation up to which changes are in there."""

    def current(self) -> Lanes | None:
        """For a survey that is about to begin, and takes over what is behind; None: there are too many."""
        columns, log = self._columns, self._columns.log
        rows, zones, width = columns.free.shape
        if columns.free.size > MOST:
            self._lanes = None
            return None
        behind = log.since(self._seen)
        if self._lanes is None or self._lanes.free.shape != (zones, width, rows):
            self._lanes, behind = block.lanes(wholly.SCRATCH, (zones, width, rows)), None
        self._seen = log.generation
        return self._lanes._replace(behind=columns.every_row if behind is None else behind)
