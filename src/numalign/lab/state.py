"""What a lab that runs tells about itself, and where: a folder per lab among the user's state.

`up` holds a lab's folder and announces every change, the command line looks. After a crash the folder is all that is
left, and `clear` takes it away."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import parts
from numalign.process import background

CONTROL, NODES, LOGS = "control", "nodes", "logs"
"""Folders of a lab: what runs beside the nodes, and for each node one, with one for its logs."""


class Piece(Struct, frozen=True):
    """One program, as it ran when the lab last said so."""

    name: str
    node: str
    log: str
    pid: int | None
    began: int | None
    """When its process began; with the id it names a process for good."""
    starts: int

    @property
    def title(self) -> str:
        return f"{self.node}/{self.name}" if self.node else self.name

    @property
    def runs(self) -> bool:
        return self.pid is not None and parts.started_at(self.pid) == self.began


class NodeTold(Struct, frozen=True):
    name: str
    machine: str
    policy: str
    scope: str
    folder: str
    mounts: tuple[tuple[str, str], ...]


class Running(Struct, frozen=True):
    name: str
    pid: int
    url: str
    kubeconfig: str
    tools: str
    """The folder of kubectl."""
    words: str
    nodes: tuple[NodeTold, ...]
    pieces: tuple[Piece, ...]


SHELF: Final = background.Shelf(
    kind="Lab", command="numalign lab", variable="NUMALIGN_LABS", place="labs", told=Running
)


def logs(name: str) -> dict[str, Path]:
    """What the programs of a lab have said, by their titles; also of one that did not come up."""
    place = SHELF.folder(name)
    beside = {log.stem: log for log in sorted(place.glob(f"{CONTROL}/*.log"))}
    on_nodes = sorted(place.glob(f"{NODES}/*/{LOGS}/*.log"))
    return beside | {f"{log.parent.parent.name}/{log.stem}": log for log in on_nodes}


def clear(name: str) -> bool:
    """End what is left of a lab that has ended without a word, and remove its folder; False if there was none."""
    place = SHELF.folder(name)
    told = SHELF.last_told(name)
    for piece in told.pieces if told is not None else ():
        if piece.pid is not None and piece.runs:
            os.kill(piece.pid, signal.SIGKILL)
    there = place.is_dir()
    shutil.rmtree(place, ignore_errors=True)
    return there
