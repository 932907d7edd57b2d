"""The interface of the plugin's caches: the facts that they take, and the look-up.

The scheduler applies facts in the order in which they occur: changes of topology reports and pods, results of its own
decisions, and at intervals the whole state of the cluster. Filter and score call `look_up` only.
A cache reads no clock and sends no requests; reports are frozen, so nothing is copied on the way in or out."""

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
    """Not fresh: the node accepts no pod. Fresh without a report: it accepts every pod. Else the report decides."""

    nrt: NodeResourceTopology | None = None
    fresh: bool = True
    generation: int = 0


class Cache:
    """A cache that stores nothing and rejects nothing. Subclasses override the facts that they need."""

    def look_up(self, node: str) -> Lookup:
        return Lookup()

    def placement(self, node: str) -> Placement | None:
        """The NUMA nodes of containers on this node, for preemption; None: this cache does not have them."""
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
        """Filter rejected the node for lack of resources, so the node should be refreshed."""

    def due(self) -> float | None:
        """When the next `resync` should happen; None: never."""
        return None

    def resync(self, nrts: Reports, pods: Iterable[Pod], now: float) -> tuple[str, ...]:
        """Compares with the whole state of the cluster; returns nodes on which rejected pods should be tried again."""
        return ()
