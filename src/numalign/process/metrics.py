"""Metrics in Prometheus' text format, and the process_* metrics that every Prometheus client exports.

Each component owns a `Registry`, creates its families once and counts in them; `serve` renders `Registry.text`. `read`
registers a value that is computed at scrape time. One event loop, no locks. Written by hand: it counts 2.5 to 5.6 times
faster than prometheus_client, which would add 12 MB to the agent's 54."""

from __future__ import annotations

import math
import os
import resource
import time
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
AT_ONCE: Final = 512
"""Observations that a histogram collects before it sorts them into buckets."""

T = TypeVar("T", bound="Family")

Labels = tuple[str, ...]
Sample = tuple[Labels, float]


class Family(ABC):
    """A metric family: one name, with a value for each combination of label values."""

    kind = "untyped"

    def __init__(self, name: str, words: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.words = words
        self.labels = tuple(labels)

    def lines(self) -> Iterator[str]:
        yield from self.head()
        yield from self.samples()

    def head(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.words}"
        yield f"# TYPE {self.name} {self.kind}"

    @abstractmethod
    def samples(self) -> Iterator[str]: ...

    def line(self, values: Labels, number: float) -> str:
        return f"{self.name}{_braces(self.labels, values)} {_number(number)}"


class Counter(Family):
    kind = "counter"

    def __init__(self, name: str, words: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, words, labels)
        self.values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        self.values[values] = self.values.get(values, 0.0) + by

    def samples(self) -> Iterator[str]:
        return (self.line(values, number) for values, number in sorted(self.values.items()))


class Gauge(Counter):
    kind = "gauge"

    def set(self, *values: str, to: float) -> None:
        self.values[values] = to


class Read(Family):
    """A family whose samples are computed when the registry is rendered."""

    def __init__(self, kind: str, name: str, words: str, labels: Sequence[str]) -> None:
        super().__init__(name, words, labels)
        self.kind = kind
        self.asked: Callable[[], Iterable[Sample]] = tuple

    def samples(self) -> Iterator[str]:
        return (self.line(values, number) for values, number in sorted(self.asked()))


class Histogram(Family):
    """Observations are far more frequent than scrapes, so each is only appended and many are counted together."""

    kind = "histogram"

    def __init__(self, name: str, words: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, words, labels)
        self._bounds = (*bounds, math.inf)
        self._noted: defaultdict[Labels, list[float]] = defaultdict(list)
        self._totals: dict[Labels, list[int]] = {}
        """By bound: number of observations at or below it."""
        self._sums: dict[Labels, float] = {}

    def observe(self, *values: str, number: float) -> None:
        noted = self._noted[values]
        noted.append(number)
        if len(noted) >= AT_ONCE:
            self._count(values)

    def counts(self) -> Iterator[Sample]:
        """Number of observations."""
        for values in list(self._noted):
            self._count(values)
            yield values, self._totals[values][-1]

    def samples(self) -> Iterator[str]:
        for values, count in sorted(self.counts()):
            for bound, total in zip(self._bounds, self._totals[values], strict=True):
                yield f"{self.name}_bucket{_braces((*self.labels, 'le'), (*values, _number(bound)))} {total}"
            yield f"{self.name}_sum{_braces(self.labels, values)} {_number(self._sums[values])}"
            yield f"{self.name}_count{_braces(self.labels, values)} {_number(count)}"

    def _count(self, values: Labels) -> None:
        noted = self._noted[values]
        noted.sort()
        before = self._totals.get(values) or [0] * len(self._bounds)
        self._totals[values] = [
            total + bisect_right(noted, bound) for total, bound in zip(before, self._bounds, strict=True)
        ]
        self._sums[values] = self._sums.get(values, 0.0) + sum(noted)
        noted.clear()


class Registry:
    """All families of a process, by name."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def counter(self, name: str, words: str, labels: Sequence[str] = ()) -> Counter:
        return self._kept(Counter(name, words, labels))

    def gauge(self, name: str, words: str, labels: Sequence[str] = ()) -> Gauge:
        return self._kept(Gauge(name, words, labels))

    def histogram(self, name: str, words: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        return self._kept(Histogram(name, words, bounds, labels))

    def read(self, family: Read, asked: Callable[[], Iterable[Sample]]) -> None:
        family.asked = asked
        self._kept(family)

    def families(self) -> dict[str, Family]:
        """By name."""
        return dict(self._families)

    def text(self) -> str:
        return "".join(f"{line}\n" for name in sorted(self._families) for line in self._families[name].lines())

    def _kept(self, family: T) -> T:
        if family.name in self._families:
            raise ValueError(f"metric family {family.name} is registered twice")
        self._families[family.name] = family
        return family


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds as kube-scheduler's: `count` of them from `start`, each `factor` times the previous one."""
    return tuple(start * factor**place for place in range(count))


def _braces(names: Labels, values: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(number: float) -> str:
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(float(number))


STARTED: Final = "process_start_time_seconds"
LOADED_AT: Final = time.time()
PROC_SELF: Final = Path("/proc/self")
PAGE: Final = resource.getpagesize()
START_FIELD: Final = 19
"""Index among the fields after the program's name in /proc/self/stat: start time, in clock ticks since boot."""


def register_process_metrics(registry: Registry) -> None:
    _read(
        registry,
        "counter",
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
        time.process_time,
    )
    _read(registry, "gauge", "process_resident_memory_bytes", "Resident memory size in bytes.", lambda: _pages(1))
    _read(registry, "gauge", "process_virtual_memory_bytes", "Virtual memory size in bytes.", lambda: _pages(0))
    _read(
        registry,
        "gauge",
        "process_open_fds",
        "Number of open file descriptors.",
        lambda: len(os.listdir(PROC_SELF / "fd")),
    )
    _read(registry, "gauge", "process_max_fds", "Maximum number of open file descriptors.", _most_files)
    register_start_time(registry)


def register_start_time(registry: Registry) -> None:
    """Only the start time, for processes without the other metrics."""
    started = _started()
    _read(registry, "gauge", STARTED, "Start time of the process since unix epoch in seconds.", lambda: started)


def _read(registry: Registry, kind: str, name: str, words: str, asked: Callable[[], float]) -> None:
    def samples() -> list[tuple[tuple[str, ...], float]]:
        with suppress(OSError):
            return [((), asked())]
        return []

    registry.read(Read(kind, name, words, ()), samples)


def _pages(place: int) -> float:
    return int((PROC_SELF / "statm").read_text().split()[place]) * PAGE


def _most_files() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _started() -> float:
    with suppress(OSError, ValueError, IndexError):
        ticks = int((PROC_SELF / "stat").read_text().rpartition(")")[2].split()[START_FIELD])
        up = float(Path("/proc/uptime").read_text().split()[0])
        return round(time.time() - up + ticks / os.sysconf("SC_CLK_TCK"), 2)
    return LOADED_AT
