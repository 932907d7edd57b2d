"""Whether to write at all: two publishers on one node overwrite each other, so that one of them has to stand back.

`publish` tells what it finds in the cluster and asks. What others left behind is taken over once; if it is written over
ours after that, somebody else is at work, and we stand back until he has been quiet for ten periods, or the object is
gone. A label that claims the object counts as long as it is there (exporter spec 1.13). Pure: time is an argument."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.agent import published
from numalign.agent.published import Published

PATIENCE: Final = 10
"""Periods without a word after which the other one counts as gone."""


class Guard(Struct):
    """What one process remembers of the others."""

    instance: str
    quiet: float
    """Seconds; longer than any two signs of life of an agent are apart."""
    wrote: bool = False
    """Whether a report of ours was taken."""
    other: str = ""
    """Whom we stand back for."""
    version: str = ""
    since: float = 0.0

    def other_than_us(self, there: Published | None, now: float) -> str:
        """Whom to stand back for; empty: write."""
        if there is None:
            self.other = ""
            return ""
        claimed = published.claimed_by(there)
        if claimed:
            self.other = claimed
        elif self.other:
            self._wait_for_quiet(there, now)
        elif self.wrote:
            self.other = published.written_by(there, self.instance)
        if self.other and there.metadata.resource_version != self.version:
            self.version, self.since = there.metadata.resource_version, now
        return self.other

    def _wait_for_quiet(self, there: Published, now: float) -> None:
        gone = there.metadata.resource_version == self.version and now - self.since >= self.quiet
        if gone:
            # Taken over as at the beginning: whoever comes back is found out by his next write.
            self.other, self.wrote = "", False
