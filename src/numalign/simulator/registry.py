"""Embedded clusters that run in the background, each in a folder of its own.

`hosting` holds a cluster's folder while it runs, `numalign cluster` looks into them. The rules are those of all things
that are kept so (`process.background`)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.process import background


class RunningCluster(Struct, frozen=True):
    """What a cluster tells about itself once it is up."""

    name: str
    pid: int
    url: str
    kubeconfig: str
    nodes: int
    words: str
    """What it is, for people."""


SHELF: Final = background.Shelf(
    kind="Cluster", command="numalign cluster", variable="NUMALIGN_CLUSTERS", place="clusters", told=RunningCluster
)
AlreadyRuns = background.AlreadyRuns

home, folder, held = SHELF.home, SHELF.folder, SHELF.held
announce, running, every, end = SHELF.announce, SHELF.running, SHELF.every, SHELF.end
