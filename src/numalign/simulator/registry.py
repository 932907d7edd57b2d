"""Registry of embedded clusters that run in the background, each in its own folder.

`hosting` locks the folder of its cluster; `numalign cluster` lists the folders. It is separate from `hosting`, because
listing clusters must not import the scheduler."""

from typing import Final

from msgspec import Struct

from numalign.process import background


class ServedScheduler(Struct, frozen=True):
    """A scheduler that runs in a cluster."""

    name: str
    sees: str
    """What it decides by, for users."""
    pages: str = ""
    """The URL of its pages; empty: it serves none."""
    token_file: str = ""
    certificate_authority: str = ""
    """The files that a client of the pages needs; empty without TLS."""


class RunningCluster(Struct, frozen=True):
    """What a cluster publishes about itself once it is up."""

    name: str
    pid: int
    url: str
    kubeconfig: str
    nodes: int
    words: str
    """A description for users."""
    schedulers: tuple[ServedScheduler, ...] = ()


INSTANCES: Final = background.Instances(
    kind="Cluster", command="numalign cluster", variable="NUMALIGN_CLUSTERS", place="clusters", content=RunningCluster
)
AlreadyRuns = background.AlreadyRuns

home, folder, held = INSTANCES.home, INSTANCES.folder, INSTANCES.held
announce, running, every, end = INSTANCES.announce, INSTANCES.running, INSTANCES.every, INSTANCES.end
prepared, remove = INSTANCES.prepared, INSTANCES.remove
