"""The cache that rejects pods on a node while a pod of this scheduler is being bound there; otherwise Passthrough.

Made for policies that spread a pod over zones, where charging every zone would be nonsense. Once the pod is bound the
node is open again, even if its report has not caught up (scheduler plugin spec 12)."""

from collections.abc import Iterable

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches.cache import Lookup
from numalign.placement.reference.caches.passthrough import Passthrough

STALE = Lookup(fresh=False)


class DiscardReserved(Passthrough):
    def __init__(self, nrts: Iterable[NodeResourceTopology] = ()) -> None:
        super().__init__(nrts)
        self._on_their_way: dict[str, set[str]] = {}

    def look_up(self, node: str) -> Lookup:
        return STALE if self._on_their_way.get(node) else super().look_up(node)

    def reserve(self, node: str, pod: Pod) -> None:
        self._on_their_way.setdefault(node, set()).add(pod.metadata.uid)

    def unreserve(self, node: str, pod: Pod) -> None:
        waiting = self._on_their_way.get(node, set())
        waiting.discard(pod.metadata.uid)
        if not waiting:
            self._on_their_way.pop(node, None)

    def post_bind(self, node: str, pod: Pod) -> None:
        self.unreserve(node, pod)
