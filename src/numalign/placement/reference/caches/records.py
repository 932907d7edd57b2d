"""What a resync notes about a pod: its name, and whether it holds exclusive resources.

Fingerprints are computed from records, and with preemption a node keeps those of its last refresh: the container
names in them are needed to read the report's placement (scheduler plugin spec 13.6 and 15.7). What is exclusive can be
judged in two ways: `judged` is the reference's, by the names in the report that the cache holds; `judged_as_on_node`
leaves out what the node of the new report cannot pin, as its agent does (exporter spec 4.6)."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from numalign.api.nrt import fingerprint
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import qos
from numalign.api.objects.pod import Container, Pod
from numalign.placement.reference import classes
from numalign.placement.reference.caches import reports
from numalign.placement.reference.caches.reports import Signature


class Record(Struct, frozen=True):
    namespace: str
    name: str
    pinned: tuple[str, ...] = ()
    """The containers that hold something exclusive, in the order of the reference."""

    @property
    def is_exclusive(self) -> bool:
        return bool(self.pinned)


Judge = Callable[[Pod], Sequence[Container]]
"""The containers of a pod that hold something exclusive."""


def of(pod: Pod, judge: Judge) -> Record:
    return Record(pod.metadata.namespace, pod.metadata.name, tuple(container.name for container in judge(pod)))


def judged(listed: frozenset[str]) -> Judge:
    return lambda pod: classes.pinned_containers(pod, listed)


def judged_as_on_node(report: NodeResourceTopology) -> Judge:
    there = reports.pinnable(report)
    return lambda pod: [each for each in classes.pinned_containers(pod, there) if _holds(pod, each, there)]


def signed(records: Iterable[Record], signature: Signature) -> bool:
    """Whether this is the fingerprint of these pods, or of the exclusive ones among them."""
    kept = (record for record in records if record.is_exclusive or not signature.only_exclusive)
    return signature.text == fingerprint.of((record.namespace, record.name) for record in kept)


def _holds(pod: Pod, container: Container, there: frozenset[str]) -> bool:
    quality, wanted = qos.of(pod), container.resources.requests
    return any(name in there and classes.is_exclusive(quality, name, wanted[name], there) for name in wanted)
