"""The recent events of one resource, for watches that come back and for lists of a moment ago.

`store` appends, `watching` reads on from a version, `pages` goes back to one. When the ring is full the oldest event
is forgotten; whoever asks for something older is told that it is gone."""

from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from typing import Final, Literal

from msgspec import Struct

EventKind = Literal["ADDED", "MODIFIED", "DELETED"]
SIZE: Final = 10_000


class Entry(Struct, frozen=True, gc=False):
    """One state of one object: its bytes, and beside them what selectors look at."""

    namespace: str
    name: str
    version: int
    data: bytes
    labels: dict[str, str]
    fields: dict[str, str] | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Event(Struct, gc=False):
    """`entry` is the object as it became, or as it was when it went; `old` what it was before."""

    kind: EventKind
    version: int
    entry: Entry
    old: Entry | None
    chunks: dict[str, bytes]
    """As it goes out to watchers of an apiVersion, made by the first of them and shared while all are told."""


class Ring:
    def __init__(self, size: int) -> None:
        self._events: deque[Event] = deque()
        self._size = size
        self.floor = 0
        """Every event after this version is here."""

    def append(self, event: Event) -> None:
        self._events.append(event)
        if len(self._events) > self._size:
            self.floor = self._events.popleft().version

    def reaches(self, version: int) -> bool:
        return version >= self.floor

    def newest(self) -> Iterator[Event]:
        return reversed(self._events)

    def after(self, version: int) -> list[Event]:
        """In order; only complete if the ring reaches the version."""
        found = list(takewhile(lambda event: event.version > version, self.newest()))
        found.reverse()
        return found
