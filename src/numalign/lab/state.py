"""The published state of running labs: one folder per lab in the user's state folder.

`up` locks a lab's folder and writes every change; the command line reads it. `clear` removes the folder after a
crash."""

import os
import shutil
import signal
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import processes
from numalign.lab.containers import cgroups
from numalign.process import background

CONTROL, NODES, LOGS = "control", "nodes", "logs"
"""Folders of a lab: control plane, nodes, and logs of each node."""
KUBECONFIG: Final = "kubeconfig"
"""The file of the administrator's kubeconfig in a lab's folder."""
FIRST: Final = "init"
"""The program that keeps the namespaces of a node with real containers."""


class ProgramState(Struct, frozen=True):
    """One program, as last published."""

    name: str
    node: str
    log: str
    pid: int | None
    began: int | None
    """The start time of its process, which with the pid identifies it."""
    starts: int

    @property
    def title(self) -> str:
        return f"{self.node}/{self.name}" if self.node else self.name

    @property
    def runs(self) -> bool:
        return self.pid is not None and processes.started_at(self.pid) == self.began


class NodeState(Struct, frozen=True):
    name: str
    machine: str
    policy: str
    scope: str
    folder: str
    mounts: tuple[tuple[str, str], ...]
    """What every program of the node mounts; none where they share the namespaces of the first one."""
    cgroups: tuple[str, ...] = ()


class LabState(Struct, frozen=True):
    name: str
    pid: int
    url: str
    kubeconfig: str
    tools: str
    """The folder of kubectl."""
    words: str
    nodes: tuple[NodeState, ...]
    pieces: tuple[ProgramState, ...]
    cgroup: str = ""
    """The name of the lab's cgroups, where its nodes run containers."""

    def home(self, node: str) -> int | None:
        """The process whose namespaces the programs of this node share; None where each has its own."""
        first = (each for each in self.pieces if each.node == node and each.name == FIRST and each.runs)
        return next((each.pid for each in first), None)


INSTANCES: Final = background.Instances(
    kind="Lab", command="numalign lab", variable="NUMALIGN_LABS", place="labs", content=LabState
)


def logs(name: str) -> dict[str, Path]:
    """The log files of a lab by program title, also of a lab that failed to start."""
    place = INSTANCES.folder(name)
    beside = {log.stem: log for log in sorted(place.glob(f"{CONTROL}/*.log"))}
    on_nodes = sorted(place.glob(f"{NODES}/*/{LOGS}/*.log"))
    return beside | {f"{log.parent.parent.name}/{log.stem}": log for log in on_nodes}


def clear(name: str) -> bool:
    """End the remaining processes of a crashed lab and remove its folder; False if there was none."""
    place = INSTANCES.folder(name)
    state = INSTANCES.last_announced(name)
    for piece in state.pieces if state is not None else ():
        if piece.pid is not None and piece.runs:
            os.kill(piece.pid, signal.SIGKILL)
    if state is not None and state.cgroup:
        cgroups.sweep(state.cgroup)
    there = place.is_dir()
    shutil.rmtree(place, ignore_errors=True)
    return there
