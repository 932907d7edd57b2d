"""A running lab: its parts, its nodes, and the state that it publishes.

`up` creates and fills it; tests and campaigns use it."""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from numalign.kube.access import kubeconfig
from numalign.kube.client import Client
from numalign.lab import processes, state
from numalign.lab.containers.cgroups import Sweeper
from numalign.lab.containers.network import LabNetwork
from numalign.lab.containers.runtime import SystemPrograms
from numalign.lab.node import LabNode, MachineTrees
from numalign.lab.processes import Part
from numalign.lab.spec import LabSpec
from numalign.process.certificates import Authority

LOG: Final = logging.getLogger(__name__)
REST: Final = 3.0
"""Minimum seconds between two starts of a program, so that a failing program does not use up the machine."""

Say = Callable[[str], None]


class ContainerLab(Struct):
    """What a lab with real containers has beside others."""

    network: LabNetwork
    sweeper: Sweeper
    system: SystemPrograms
    authority: Authority
    """It certifies nodes; its key is in memory only."""
    found: Mapping[str, Path]
    """The lab's binaries by name."""
    loaded: list[tuple[Path, str]] = field(default_factory=list)
    """Image archives and names of their images: nodes that are added get them, too."""

    @property
    def ctr(self) -> Path:
        return self.found["ctr"]

    def close(self) -> None:
        """After all programs have ended."""
        self.network.close()
        self.sweeper.finish()


class Lab:
    """A running lab. `parts` are the programs of the control plane by name; each node has its own."""

    def __init__(self, spec: LabSpec, place: Path, say: Say) -> None:
        self.spec, self.place = spec, place
        self.parts: dict[str, Part] = {}
        self.nodes: dict[str, LabNode] = {}
        self.trees = MachineTrees(place / "machines")
        self.kubeconfig = place / state.KUBECONFIG
        self.url = ""
        self.authority = Path()
        """The certificate that clients verify the API server with."""
        self.containers: ContainerLab | None = None
        """Where the nodes run containers."""
        self.tools = Path()
        """The folder of kubectl."""
        self._say = say
        self._began = time.monotonic()
        self._announced: list[int | None] = []

    def say(self, line: str) -> None:
        """Print progress."""
        self._say(f"{time.monotonic() - self._began:5.1f} s  {line}")

    def client(self) -> Client:
        """A client with administrator rights, to be entered."""
        return Client(kubeconfig.access((str(self.kubeconfig),)))

    def every_part(self) -> Iterator[Part]:
        yield from self.parts.values()
        for each in self.nodes.values():
            yield from each.parts.values()

    def announce(self) -> None:
        self._announced = self._processes()
        state.INSTANCES.announce(self.place, self._state())

    def tend(self) -> None:
        """Restart programs that ended unexpectedly, and publish the list of processes if it changed."""
        rested = time.monotonic() - REST
        # All of them before any is started: the first process of a node ends when the others are collected.
        ended = [part for part in self.every_part() if part.wanted and not part.runs]
        for part in ended:
            if part.started < rested and (part.home is None or part.home.settled):
                LOG.warning("%s ended, and is started again", part.program.title)
                part.start()
        if self._processes() != self._announced:
            self.announce()

    def _processes(self) -> list[int | None]:
        return [part.pid for part in self.every_part()]

    def _state(self) -> state.LabState:
        beside = [name for name in self.parts if name not in ("etcd", "kube-apiserver")]
        words = f"{len(self.nodes)} node{'s' if len(self.nodes) != 1 else ''}"
        return state.LabState(
            name=self.spec.name,
            pid=os.getpid(),
            url=self.url,
            kubeconfig=str(self.kubeconfig),
            tools=str(self.tools),
            words=f"{words}, {', '.join(beside)}" if beside else words,
            nodes=tuple(map(_node, self.nodes.values())),
            pieces=tuple(map(_piece, self.every_part())),
            cgroup=self.containers.sweeper.cgroup if self.containers is not None else "",
        )


def _node(node: LabNode) -> state.NodeState:
    settings = node.spec.settings
    return state.NodeState(
        name=node.name,
        machine=node.spec.machine.name,
        policy=settings.topology_policy,
        scope=settings.topology_scope,
        folder=str(node.place.folder),
        mounts=node.place.mounts if node.containers is None else (),
        cgroups=node.containers.members if node.containers is not None else (),
    )


def _piece(part: Part) -> state.ProgramState:
    program, pid = part.program, part.pid
    return state.ProgramState(
        name=program.name,
        node=program.node,
        log=str(program.log),
        pid=pid,
        began=processes.started_at(pid) if pid is not None else None,
        starts=part.starts,
    )
