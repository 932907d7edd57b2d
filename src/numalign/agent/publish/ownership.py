"""Whether to write at all: two publishers on one node overwrite each other, so that one of them has to stand back.

`publish` tells what it finds in the cluster and asks. What others left behind is taken over once; if it is written over
ours after that, somebody else is at work, and we stand back. Every ten periods we try again: whoever is still at work
is found out by his next write. Once the object is gone we write at once. A label that claims the object counts as long
as it is there (exporter spec 1.13). Pure: time is an argument."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.agent.publish import published
from numalign.agent.publish.published import Published

PATIENCE: Final = 10
"""Periods from standing back to the next try."""


class Guard(Struct):
    """What one process remembers of the others."""

    instance: str
    patience: float
    """Seconds from standing back to the next try."""
    wrote: bool = False
    """Whether a report of ours was taken."""
    other: str = ""
    """Whom we stand back for."""
    since: float = 0.0

    def look(self, there: Published | None, now: float) -> str:
        """Whom to stand back for, by what is there now; empty: write."""
        if there is None:
            self.other = ""
            return ""
        claimed = published.claimed_by(there)
        if claimed:
            self._stand_back(claimed, now)
        elif self.other and now - self.since >= self.patience:
            # Taken over as at the beginning.
            self.other, self.wrote = "", False
        elif self.wrote and not self.other and (writer := published.written_by(there, self.instance)):
            self._stand_back(writer, now)
        return self.other

    def _stand_back(self, other: str, now: float) -> None:
        self.other, self.since = other, now
