"""The history of a campaign: one line per event of a pod, a node or a program, and the life of each pod rebuilt from
it.

`watch`, `actions` and `operations` write lines; `judge`, `exemptions` and `report` read them, from memory or from a
saved file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct, field

Zones = tuple[int, ...]
What = Literal[
    "created",
    "bound",
    "waits",
    "started",
    "ended",
    "deletion-requested",
    "gone",
    "holds",
    "cpus-freed",
    "freed",
    "stuck",
    "nominated",
    "disrupted",
    "report-deleted",
    "operation",
    "lacks",
    "offers",
    "reported",
    "behind",
    "level",
    "down",
    "up",
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


class HistoryLine(Struct, frozen=True, omit_defaults=True, kw_only=True):
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
    predicted: Mapping[str, tuple[Zones, ...]] = NOTHING
    """The predicted sets of zones by container; the kubelet chooses one of them."""
    loose: bool = False
    """Whether the kubelet's policy does not enforce zones."""
    holds: Mapping[str, Holding] = NOTHING
    devices: Mapping[str, int] = NOTHING
    """Devices that a pod requests or a node offers."""
    uids: tuple[str, ...] = ()
    """UIDs of the pods in a report."""
    priority: int = 0


class History:
    """Collects lines from all observers."""

    def __init__(self) -> None:
        self.lines: list[HistoryLine] = []
        self._began = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def write(self, what: What, **fields: Any) -> None:
        self.lines.append(HistoryLine(at=round(self.now, 3), what=what, **fields))


def encode(lines: Iterable[HistoryLine]) -> bytes:
    """One JSON document per line."""
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


class PodHistory(Struct):
    """One pod's life. Times are seconds from the start; None means that the event did not happen."""

    name: str
    uid: str
    created: float
    devices: Mapping[str, int] = field(default_factory=dict)
    node: str = ""
    bound: float | None = None
    predicted: Mapping[str, tuple[Zones, ...]] = field(default_factory=dict)
    loose: bool = False
    """Whether its kubelet's policy does not enforce zones."""
    holds: dict[str, Holding] = field(default_factory=dict)
    held: float | None = None
    """When its kubelet's checkpoint first contained it; `freed`: when it no longer did."""
    freed: float | None = None
    cpus_freed: float | None = None
    """When its exclusive CPUs were free; kubelets keep devices and memory longer."""
    started: float | None = None
    ended: float | None = None
    failed: bool = False
    why: str = ""
    words: str = ""
    asked: float | None = None
    """When its deletion was requested."""
    gone: float | None = None
    priority: int = 0
    disrupted: str = ""
    """The reason of its condition DisruptionTarget: preempted, evicted."""
    disrupted_at: float | None = None

    @property
    def left(self) -> float:
        """When it was seen to be over; infinite if it is not."""
        return min(self.gone or float("inf"), self.ended or float("inf"))

    @property
    def wanted(self) -> frozenset[int]:
        """Predicted zones of all containers."""
        return frozenset(zone for choices in self.predicted.values() for choice in choices for zone in choice)

    @property
    def zones(self) -> frozenset[int]:
        return frozenset[int]().union(*(each.zones for each in self.holds.values()))


def of(lines: Sequence[HistoryLine]) -> dict[str, PodHistory]:
    """The pods by uid. Pods of other schedulers are left out."""
    # While the server was down, a deletion may have been requested before the pod was seen.
    asked = {line.uid: line.at for line in lines if line.what == "deletion-requested"}
    pods: dict[str, PodHistory] = {}
    for line in lines:
        if line.what == "created" and line.uid not in pods:
            pods[line.uid] = PodHistory(
                line.name, line.uid, line.at, line.devices, asked=asked.get(line.uid), priority=line.priority
            )
        if line.uid in pods:
            _apply(pods[line.uid], line)
    return pods


def _apply(pod: PodHistory, line: HistoryLine) -> None:
    match line.what:
        case "bound":
            pod.node, pod.bound, pod.predicted, pod.loose = line.node, line.at, line.predicted, line.loose
        case "holds":
            pod.holds, pod.held = {**pod.holds, **line.holds}, pod.held or line.at
        case "cpus-freed":
            pod.cpus_freed = line.at
        case "freed":
            pod.freed, pod.cpus_freed = line.at, pod.cpus_freed or line.at
        case "started":
            pod.started = pod.started or line.at
        case "ended":
            pod.ended, pod.failed, pod.why, pod.words = line.at, line.phase == "Failed", line.why, line.words
        case "gone":
            pod.gone = line.at
        case "disrupted":
            pod.disrupted, pod.disrupted_at = line.why, line.at


def absences(lines: Iterable[HistoryLine], parts: Sequence[str]) -> Iterator[tuple[float, float]]:
    """When these programs were down; infinite if one did not return."""
    away: dict[str, float] = {}
    for line in lines:
        if line.name in parts and line.what == "down":
            away[line.name] = line.at
        elif line.name in parts and line.what == "up" and line.name in away:
            yield away.pop(line.name), line.at
    yield from ((begun, float("inf")) for begun in away.values())
