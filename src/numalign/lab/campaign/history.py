"""The history of a campaign: one line per event of a pod, a node or a program, in order.

`watching`, `acting` and `resting` write lines; `judging` reads them, from memory or from a saved file."""

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
    """The zones of a container's resources, from the kubelet's checkpoints."""

    cpus: Zones = ()
    """Zones of its exclusive CPUs."""
    memory: Zones = ()
    devices: tuple[Zones, ...] = ()
    """Zones of each device with topology."""

    @property
    def zones(self) -> frozenset[int]:
        return frozenset({*self.cpus, *self.memory}.union(*self.devices))

    def over(self, before: Holding) -> Holding:
        """This holding, with empty fields taken from `before`."""
        return Holding(self.cpus or before.cpus, self.memory or before.memory, self.devices or before.devices)


class Line(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One event. `at` is in seconds from the start; `why` is a reason, `words` a message."""

    at: float
    what: What
    name: str = ""
    """The pod's name, or the title of a program."""
    uid: str = ""
    node: str = ""
    phase: str = ""
    why: str = ""
    words: str = ""
    foretold: Mapping[str, tuple[Zones, ...]] = NOTHING
    """By container, the predicted sets of zones, of which the kubelet chooses one."""
    loose: bool = False
    """Whether the kubelet's policy does not enforce zones."""
    holds: Mapping[str, Holding] = NOTHING
    devices: Mapping[str, int] = NOTHING
    """Devices that a pod requests or a node offers."""
    uids: tuple[str, ...] = ()
    """UIDs of the pods in a report."""


class History:
    """Collects lines from all observers."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._began = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def write(self, what: What, **told: Any) -> None:
        self.lines.append(Line(at=round(self.now, 3), what=what, **told))


def encode(lines: Iterable[Line]) -> bytes:
    """One JSON document per line."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def decode(raw: bytes) -> list[Line]:
    return [msgspec.json.decode(line, type=Line) for line in raw.splitlines()]
