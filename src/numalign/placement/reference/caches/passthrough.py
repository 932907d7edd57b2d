"""The cache without reservations: a look-up returns the node's latest report.

The plugin asks the API server each time; this cache follows every change instead, so a look-up cannot fail.
There is no report for a node that never had one, and then every pod may go there (scheduler plugin spec 11)."""

from collections.abc import Iterable

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.placement.reference.caches.cache import Cache, Lookup


class Passthrough(Cache):
    def __init__(self, nrts: Iterable[NodeResourceTopology] = ()) -> None:
        self._nrts = {nrt.metadata.name: nrt for nrt in nrts}

    def look_up(self, node: str) -> Lookup:
        return Lookup(self._nrts.get(node))

    def nrt_added(self, nrt: NodeResourceTopology) -> None:
        self._nrts[nrt.metadata.name] = nrt

    def nrt_changed(self, nrt: NodeResourceTopology) -> None:
        self._nrts[nrt.metadata.name] = nrt

    def nrt_gone(self, node: str) -> None:
        self._nrts.pop(node, None)
