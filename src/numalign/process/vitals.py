"""What the system knows of this process, under the names that every Prometheus client has: process_*.

Registered once by whoever owns a registry, and read from /proc whenever somebody looks; where there is no /proc, only
what Python itself knows is told."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from numalign.process.metrics import Read, Registry

STARTED: Final = "process_start_time_seconds"
LOADED_AT: Final = time.time()
ITSELF: Final = Path("/proc/self")
PAGE: Final = resource.getpagesize()
START_FIELD: Final = 19
"""Index among the fields after the program's name in /proc/self/stat: start time, in clock ticks since boot."""


def register(registry: Registry) -> None:
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
        lambda: len(os.listdir(ITSELF / "fd")),
    )
    _read(registry, "gauge", "process_max_fds", "Maximum number of open file descriptors.", _most_files)
    register_start(registry)


def register_start(registry: Registry) -> None:
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
    return int((ITSELF / "statm").read_text().split()[place]) * PAGE


def _most_files() -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _started() -> float:
    with suppress(OSError, ValueError, IndexError):
        ticks = int((ITSELF / "stat").read_text().rpartition(")")[2].split()[START_FIELD])
        up = float(Path("/proc/uptime").read_text().split()[0])
        return round(time.time() - up + ticks / os.sysconf("SC_CLK_TCK"), 2)
    return LOADED_AT
