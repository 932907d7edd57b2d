"""What was seen in a campaign, as data: a line for everything that happened to a pod, a node or a program, in order.

`watching`, `acting` and `resting` write lines, `judging` reads them, now or from a file of another day."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

Zones = tuple[int, ...]
What = Literal[
    "created",
    "bound",
    "waits",
    "started",
    "ended",
    "asked-to-go",
    "gone",
    "holds",
    "freed",
    "stuck",
    "offers",
    "told",
    "behind",
    "level",
    "away",
    "back",
]
NOTHING: Final[Mapping[str, Any]] = {}


class Holding(Struct, frozen=True, omit_defaults=True):
    """Where a container is, by its kubelet's own books."""

    cpus: Zones = ()
    """Zones of its exclusive CPUs."""
    memory: Zones = ()
    devices: tuple[Zones, ...] = ()
    """Per device that knows its zones."""

    @property
    def zones(self) -> frozenset[int]:
        return frozenset({*self.cpus, *self.memory}.union(*self.devices))

    def over(self, before: Holding) -> Holding:
        """This, and where it says nothing, what was before."""
        return Holding(self.cpus or before.cpus, self.memory or before.memory, self.devices or before.devices)


class Line(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`at` counts seconds from the beginning; `why` is a reason's name, `words` a message."""

    at: float
    what: What
    name: str = ""
    """Of a pod, or the title of a program."""
    uid: str = ""
    node: str = ""
    phase: str = ""
    why: str = ""
    words: str = ""
    foretold: Mapping[str, tuple[Zones, ...]] = NOTHING
    """By container, the sets of zones of which the kubelet was to choose one."""
    loose: bool = False
    """Whether the kubelet need not keep to zones."""
    holds: Mapping[str, Holding] = NOTHING
    devices: Mapping[str, int] = NOTHING
    """That a pod asks for, or a node offers."""
    uids: tuple[str, ...] = ()
    """Of the pods that a report tells of."""


class History:
    """Written to by everybody who sees something."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._began = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def write(self, what: What, **told: Any) -> None:
        self.lines.append(Line(at=round(self.now, 3), what=what, **told))


def encode(lines: Iterable[Line]) -> bytes:
    """One JSON document a line."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def decode(raw: bytes) -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in raw.splitlines()]
