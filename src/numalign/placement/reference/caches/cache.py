"""What every cache of the plugin is told, and what it answers.

The scheduler tells facts in the order in which they happen: topology reports and pods that come and go, what became of
its own decisions, and now and then the whole state of the cluster. `look_up` is the one question of filter and score.
A cache reads no clock and asks nobody; reports are frozen, so nothing is copied on the way in or out."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod

Reports = Mapping[str, NodeResourceTopology]
"""The reports that could be read, by node."""

Placement = Mapping[ContainerRef, int]
"""The NUMA node that each container is pinned to."""


class Lookup(Struct, frozen=True):
    """Not fresh: no pod goes there. Fresh without a report: every pod may. Else the report decides."""

    nrt: NodeResourceTopology | None = None
    fresh: bool = True
    generation: int = 0


class Cache:
    """One that knows nothing and forbids nothing. A fact that a real one does not override is of no use to it."""

    def look_up(self, node: str) -> Lookup:
        return Lookup()

    def placement(self, node: str) -> Placement | None:
        """Where containers are on this node, for preemption; None: this cache cannot know."""
        return None

    def nrt_added(self, nrt: NodeResourceTopology) -> None: ...

    def nrt_changed(self, nrt: NodeResourceTopology) -> None: ...

    def nrt_gone(self, node: str) -> None: ...

    def pod_seen(self, pod: Pod) -> None:
        """A pod was added or changed, if only in its status; after a start, every pod that is there.

        With a shared informer the plugin has no pods that have ended: there, a pod that ends is gone."""

    def pod_gone(self, pod: Pod) -> None: ...

    def reserve(self, node: str, pod: Pod) -> None: ...

    def unreserve(self, node: str, pod: Pod) -> None: ...

    def post_bind(self, node: str, pod: Pod) -> None: ...

    def rejected(self, node: str) -> None:
        """Filter refused the node for want of room, so it is worth another look."""

    def due(self) -> float | None:
        """When the next `resync` should happen; None: never."""
        return None

    def resync(self, nrts: Reports, pods: Iterable[Pod], now: float) -> tuple[str, ...]:
        """Compare with the whole cluster as it is; the nodes that pods refused before should be held against again."""
        return ()
