"""Registry of embedded clusters that run in the background, each in its own folder.

`hosting` locks the folder of its cluster; `numalign cluster` lists the folders. It is separate from `hosting`, because
listing clusters must not import the scheduler."""

from typing import Final

from msgspec import Struct

from numalign.process import background


class RunningCluster(Struct, frozen=True):
    """What a cluster publishes about itself once it is up."""

    name: str
    pid: int
    url: str
    kubeconfig: str
    nodes: int
    words: str
    """A description for users."""


SHELF: Final = background.Shelf(
    kind="Cluster", command="numalign cluster", variable="NUMALIGN_CLUSTERS", place="clusters", told=RunningCluster
)
AlreadyRuns = background.AlreadyRuns

home, folder, held = SHELF.home, SHELF.folder, SHELF.held
announce, running, every, end = SHELF.announce, SHELF.running, SHELF.every, SHELF.end
