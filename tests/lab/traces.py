"""What a lab with real containers leaves on the machine while it runs, and what of it is there afterwards.

Other labs may run at the same time, so only what belongs to this one is looked at: it is named by its processes, its
folder, its link and its cgroups. Sysctls are those of the whole machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from numalign.lab import processes
from numalign.lab.containers import cgroups
from numalign.lab.state import LabState

SYSCTLS = Path("/proc/sys")
SETTINGS = ("vm", "kernel", "net/ipv4/conf/all", "net/ipv4/conf/default", "net/ipv6/conf/all", "net/bridge")
SINGLE = ("net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max", "fs/inotify/max_user_instances")
CHANGING = {"ns_last_pid"}
"""Sysctls whose value the kernel changes by itself."""


class Traces(Struct, frozen=True):
    """Of one lab; empty after its end."""

    processes: dict[int, int]
    """Start times by process id."""
    mounts: tuple[int, ...]
    """Processes that see something mounted from the lab's folder."""
    link: bool
    cgroups: tuple[str, ...]

    @property
    def gone(self) -> bool:
        return not (self.processes or self.mounts or self.link or self.cgroups)


def of(lab: LabState, place: Path) -> Traces:
    groups = tuple(str(path) for root in cgroups.hierarchies() for path in _folders(root / lab.cgroup))
    pids = {piece.pid for piece in lab.pieces if piece.pid} | {pid for group in groups for pid in _members(group)}
    found = {pid: began for pid in pids if (began := processes.started_at(pid)) is not None}
    return Traces(found, tuple(_seeing(place)), _link(lab).exists(), groups)


def left(before: Traces, lab: LabState, place: Path) -> Traces:
    """What is still there of these."""
    now = of(lab, place)
    alive = {pid: began for pid, began in before.processes.items() if processes.started_at(pid) == began}
    return Traces(alive, now.mounts, now.link, now.cgroups)


def sysctls() -> dict[str, str]:
    files = [file for each in SETTINGS for file in sorted((SYSCTLS / each).glob("*"))]
    return dict(_readable([*files, *(SYSCTLS / each for each in SINGLE)]))


def _readable(files: list[Path]) -> Iterator[tuple[str, str]]:
    for file in files:
        if file.is_file() and file.name not in CHANGING:
            with contextlib.suppress(OSError):
                yield str(file), file.read_text()


def _link(lab: LabState) -> Path:
    """198.18.N.M is of the link with the number that its addresses make."""
    third, fourth = map(int, lab.url.split("//")[1].split(":")[0].split(".")[2:])
    return Path("/sys/class/net", f"numalab{(third * 256 + fourth) // 4}")


def _folders(top: Path) -> list[Path]:
    return [Path(path) for path, _, _ in os.walk(top)]


def _members(group: str) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(line) for line in Path(group, "cgroup.procs").read_text().split() if line != "0"]
    return []


def _seeing(place: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            if str(place) in process.read_text():
                yield int(process.parent.name)
