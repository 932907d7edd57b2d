"""Finds the process of this node's kubelet in the host's /proc.

`kubeletconfig` takes the kubelet's flags from it. Every container appears in the host's /proc and chooses its own name,
so the name proves nothing. The kubelet runs as root, in the PID namespace of this /proc, in the mount namespace of
process 1, and outside the cgroups of pods; a process that a pod can start fails at least one of these checks. Mount
namespaces can be read only with the capability SYS_PTRACE; without it the other checks decide."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.sources.hostfiles import Files

NAME: Final = "kubelet"
FIRST: Final = "1"
OWN: Final = "self"
IN_A_POD: Final = re.compile(r"kubepods|(?:^|[/-])pod[0-9a-f]{8}[-_]?(?:[0-9a-f]{4}[-_]?){3}[0-9a-f]{12}")
"""In a cgroup path. Seen from a pod, the path of its neighbour starts at the pod: /../../podUID."""
START_TIME: Final = 19
"""The place of a process's start time in /proc/PID/stat, counted after the name."""


class Kubelets(Struct, frozen=True):
    trusted: tuple[int, ...]
    """Oldest first."""
    others: tuple[int, ...]
    """Processes of that name that may be of a pod or of another user."""


def find(proc: Path) -> Kubelets:
    files = Files(proc)
    named = [pid for pid in files.processes() if files.text(f"{pid}/comm") == NAME]
    trusted = [pid for pid in named if _is_node_process(files, pid)]
    trusted.sort(key=lambda pid: _started(files, pid))
    return Kubelets(tuple(trusted), tuple(pid for pid in named if pid not in trusted))


def choose(proc: Path, kubelets: Iterable[int]) -> tuple[int | None, str]:
    """Of kubelets with one root folder, oldest first, the one that sees the agent's files, and a problem or "".

    Several kubelets on one machine, as in a lab, use the same path in different mount namespaces."""
    found = list(kubelets)
    if len(found) > 1:
        own = [pid for pid in found if mounts(proc, str(pid)) == mounts(proc, OWN)]
        found = own or found
    if len(found) < 2:
        return (found[0] if found else None), ""
    if len({mounts(proc, str(pid)) for pid in found}) > 1:
        return None, ""
    return found[0], f"processes {', '.join(map(str, found))} are kubelets of this node; the flags of the oldest count"


def mounts(proc: Path, process: str) -> str:
    """The process's mount namespace; empty where it cannot be read."""
    try:
        return os.readlink(proc / process / "ns/mnt")
    except OSError:
        return ""


def _is_node_process(files: Files, pid: int) -> bool:
    lines = (line.partition(":") for line in (files.text(f"{pid}/status") or "").splitlines())
    status = {name: value.split() for name, _, value in lines}
    cgroup = files.text(f"{pid}/cgroup")
    namespaces = mounts(files.root, FIRST), mounts(files.root, str(pid))
    return (
        status.get("Uid") == ["0"] * 4
        and len(status.get("NSpid", ())) == 1
        and bool(cgroup)
        and IN_A_POD.search(cgroup or "") is None
        and ("" in namespaces or namespaces[0] == namespaces[1])
    )


def _started(files: Files, pid: int) -> int:
    after_name = (files.text(f"{pid}/stat") or "").rpartition(")")[2].split()
    return int(after_name[START_TIME]) if len(after_name) > START_TIME else 0
