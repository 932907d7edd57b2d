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


INSTANCES: Final = background.Instances(
    kind="Cluster", command="numalign cluster", variable="NUMALIGN_CLUSTERS", place="clusters", content=RunningCluster
)
AlreadyRuns = background.AlreadyRuns

home, folder, held = INSTANCES.home, INSTANCES.folder, INSTANCES.held
announce, running, every, end = INSTANCES.announce, INSTANCES.running, INSTANCES.every, INSTANCES.end
prepared, remove = INSTANCES.prepared, INSTANCES.remove
