"""Correlates events: decides which occurrences are written, and which only increase a series.

`recorder` performs the writes. Events that are equal except for the note become a series within six minutes; a series
is written when it begins, every half hour, and when it ends (kube-scheduler spec 7.6). Pure: time is an argument."""

import zlib
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.kube.clock import microtime
from numalign.kube.resources import Event, EventSeries, ObjectReference

SERIES_ENDS: Final = 360.0
SERIES_REFRESH: Final = 1800.0
LONGEST_NOTE: Final = 1024
CUT: Final = " ..."
HOME: Final = "default"
"""Namespace of events about objects that have none."""


class Occurrence(Struct, frozen=True, kw_only=True):
    """One occurrence, with the fields of the API; `type` is Normal or Warning."""

    regarding: ObjectReference
    reason: str
    action: str
    note: str
    type: str = "Normal"
    related: ObjectReference | None = None


class Reporter(Struct, frozen=True):
    controller: str
    instance: str


class Create(Struct, frozen=True):
    event: Event


class Count(Struct, frozen=True):
    """Patch the event's series; if the event is gone, create it again."""

    event: Event


Write = Create | Count


class _Kept(Struct):
    event: Event
    last: float
    written: float


class Correlator:
    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._kept: dict[object, _Kept] = {}
        self._last = 0
        self._first = zlib.crc32(f"{reporter.controller}/{reporter.instance}".encode()) % 1000
        """Nanoseconds that this reporter adds, so that two reporters choose two names in the same microsecond."""

    def __len__(self) -> int:
        return len(self._kept)

    def happened(self, what: Occurrence, now: float, wall: datetime) -> Write | None:
        """The write that the occurrence needs at once, if any."""
        key = (what.type, what.action, what.reason, what.regarding, what.related)
        kept = self._kept.get(key)
        if kept is None or now - kept.last >= SERIES_ENDS:
            event = self._event(what, wall)
            self._kept[key] = _Kept(event, now, now)
            return Create(event)
        begins = kept.event.series is None
        count = kept.event.series.count + 1 if kept.event.series else 2
        kept.event = msgspec.structs.replace(kept.event, series=EventSeries(count, microtime(wall)))
        kept.last = now
        if not begins:
            return None
        kept.written = now
        return Count(kept.event)

    def due(self, now: float) -> list[Write]:
        """Series to write because they ended or are due for an update; ended series are dropped."""
        ended = {key: kept for key, kept in self._kept.items() if now - kept.last >= SERIES_ENDS}
        for key in ended:
            del self._kept[key]
        going_on = [kept for kept in self._kept.values() if now - kept.written >= SERIES_REFRESH]
        for kept in going_on:
            kept.written = now
        return [Count(kept.event) for kept in (*ended.values(), *going_on) if kept.event.series]

    def _event(self, what: Occurrence, wall: datetime) -> Event:
        # The name ends with nanoseconds, but the clock has microseconds: events of the same microsecond are numbered.
        self._last = max(self._last + 1, _nanoseconds(wall) + self._first)
        return event(what, self._reporter, wall, self._last)


def event(what: Occurrence, reporter: Reporter, wall: datetime, number: int = 0) -> Event:
    """The Event to create; `number` replaces the time at the end of its name."""
    regarding = what.regarding
    return Event(
        metadata=ObjectMeta(
            name=f"{regarding.name}.{number or _nanoseconds(wall):x}", namespace=regarding.namespace or HOME
        ),
        event_time=microtime(wall),
        type=what.type,
        reason=what.reason,
        action=what.action,
        note=cut(what.note),
        regarding=regarding,
        related=what.related,
        reporting_controller=reporter.controller,
        reporting_instance=reporter.instance,
    )


def _nanoseconds(wall: datetime) -> int:
    return int(wall.timestamp() * 1_000_000) * 1000


def cut(note: str) -> str:
    """Cuts the note to the API's limit in bytes, between characters."""
    raw = note.encode("utf-8", "replace")
    if len(raw) <= LONGEST_NOTE:
        return note
    return raw[: LONGEST_NOTE - len(CUT)].decode("utf-8", "ignore") + CUT
