"""Where the dashboard's pages get what they show.

`cli` implements `Source` for a live scheduler, a cluster, a file and a recording; tests for a made-up cluster. A source
answers from what it has: it never changes the cluster."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from numalign.dashboard.details import Details
from numalign.dashboard.moment import Moment


class Period(Struct, frozen=True):
    """The time that a recording covers."""

    begin: float
    end: float
    marks: tuple[float, ...] = ()
    """When something was decided, thinned out."""
    goes_on: bool = False
    """Whether a scheduler is writing the recording; pages without a time show the present."""


class Source(Details, Protocol):
    @property
    def is_live(self) -> bool:
        """Whether the next moment may be another one, so that pages ask again."""

    @property
    def period(self) -> Period | None:
        """None: there is no recording to go back in."""

    async def moment(self, at: float | None = None) -> Moment:
        """The cluster now, or as it was at a time of the period. SourceFailed if it cannot be read."""


class SourceFailed(Exception):
    """The source cannot be read now; the text says why and what to do."""
