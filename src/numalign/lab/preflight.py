"""Checks whether this machine can run a lab, and says in one sentence what is missing.

`up` and tests call it before they start anything."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from numalign.agent.sources.filewatch import Inotify
from numalign.lab import build, launching, machinetree
from numalign.lab.containers import runtime
from numalign.lab.errors import LabError
from numalign.lab.node import KUBELET_ROOT

ELSEWHERE: Final = "`numalign cluster up`, an embedded cluster that needs neither"
PROCESSES: Final = Path("/proc")
FOR_KUBELET: Final = 5
FOR_REPORTER: Final = 1
FOR_CONTROL_PLANE: Final = 2
"""Inotify instances that each program uses."""
FOR_CONTAINERS: Final = 3
"""Further ones of containerd and certificates, per node and for the control plane."""
ENOUGH: Final = 512
"""Inotify instances that suffice for the largest lab and others beside it."""
SHOWN: Final = ("/sys/devices/system", f"/{machinetree.HUGEPAGES}", "/proc/cpuinfo", "/proc/meminfo")


def instances(nodes: int, reporters: int, *, containers: bool = False) -> int:
    """The inotify instances that a lab uses."""
    for_containers = FOR_CONTAINERS * (nodes + 1) if containers else 0
    return nodes * FOR_KUBELET + reporters * FOR_REPORTER + FOR_CONTROL_PLANE + for_containers


def missing(nodes: int = 1, reporters: int = 0, *, containers: bool = False) -> str:
    """What is missing for this number of nodes and publishers; empty if nothing is."""
    if sys.platform != "linux":
        return f"a lab needs Linux and root; use a virtual machine, or {ELSEWHERE}"
    if os.geteuid() != 0:
        return f"a lab needs root, to show each kubelet its own machine; use sudo, or {ELSEWHERE}"
    if not build.found():
        return f"a lab builds its programs with Go, which is not here; {build.ADVICE}"
    if containers and (problem := runtime.missing()):
        return problem
    absent = [path for path in (*SHOWN, *(f"/{each}" for each in machinetree.TUNABLES)) if not os.path.exists(path)]
    if absent:
        return f"a lab shows kubelets its own {absent[0]}, which this system does not have; use a whole virtual machine"
    return _crowded(nodes, instances(nodes, reporters, containers=containers)) or _refused()


def require(nodes: int = 1, reporters: int = 0, *, containers: bool = False) -> None:
    if problem := missing(nodes, reporters, containers=containers):
        raise LabError(problem)
    # An empty folder as mount point; `release` removes it with the last lab.
    Path(KUBELET_ROOT).mkdir(parents=True, exist_ok=True)


def release() -> None:
    """Remove the mount point after the last lab, unless it is in use. Labs of other users may still run, and removing a
    folder also removes what is mounted over it in other namespaces."""
    if _is_mounted_over(KUBELET_ROOT):
        return
    try:
        os.rmdir(KUBELET_ROOT)
    except OSError:
        return


def _is_mounted_over(folder: str) -> bool:
    """Whether any process has a mount there: each may have its own mount namespace."""
    for mounts in PROCESSES.glob("[0-9]*/mountinfo"):
        try:
            if f" {folder} " in mounts.read_text():
                return True
        except OSError:
            continue  # the process has ended
    return False


def _crowded(nodes: int, wanted: int) -> str:
    """A kubelet without free inotify instances ends with "too many open files"."""
    free = free_instances(wanted)
    if free == wanted:
        return ""
    remedy = f"`sysctl fs.inotify.max_user_instances={max(ENOUGH, 2 * wanted)}`, or fewer nodes"
    return f"{nodes} kubelets need {wanted} inotify instances, and root has {free} left; {remedy}"


def free_instances(wanted: int) -> int:
    """How many inotify instances this user can still create, up to `wanted`, found by creating them: a container cannot
    see those of other programs."""
    with contextlib.ExitStack() as held:
        for count in range(wanted):
            try:
                held.callback(Inotify().close)
            except OSError:
                return count
    return wanted


def _refused() -> str:
    """The error of a mount in a separate namespace; empty if it works."""
    probe = launching.command(["/bin/true"], [("/proc/meminfo", "/proc/cpuinfo")], writable=())
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return ""
    why = tried.stderr.strip() or f"exit code {tried.returncode}"
    return f"a lab mounts files in namespaces of its own, and the system refuses ({why}); use a privileged container"
