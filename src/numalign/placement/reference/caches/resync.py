"""The first half of a round: which nodes can be refreshed from the cluster as it is.

`OverReserve.prepare` calls `confirmed` for nodes that were refused or got foreign pods: a report is taken if its
fingerprint is that of a set of pods that the node can be running (scheduler plugin spec 13.6). Nothing changes here;
`OverReserve.commit` carries out the `Round`."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import podgroups, records, reports
from numalign.placement.reference.caches.cache import Reports
from numalign.placement.reference.caches.ledger import Reservation, Reservations
from numalign.placement.reference.caches.podgroups import NodePods, PodKey
from numalign.placement.reference.caches.records import Judge, Record
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.rules import Rules


class Refresh(Struct, frozen=True):
    """A report that replaces the cached one, the pods it speaks of, and the reservations that outlive it."""

    nrt: NodeResourceTopology
    records: tuple[Record, ...] = ()
    unreported: frozenset[PodKey] = frozenset()


class Round(Struct, frozen=True):
    """What a round found. `late`: reports of nodes that the cache has none of."""

    moment: int
    refreshes: tuple[Refresh, ...] = ()
    late: tuple[NodeResourceTopology, ...] = ()


class Cluster:
    """Reports and pods as they were read at one time, sorted for the questions of a round."""

    def __init__(self, nrts: Reports, pods: Iterable[Pod], rules: Rules) -> None:
        known = tuple(pods)
        self.nrts = nrts
        self._of_nodes = podgroups.by_node(known, rules.is_relevant)
        self._by_key = {podgroups.key_of(pod): pod for pod in known}

    def pods_of(self, node: str) -> NodePods:
        return self._of_nodes.get(node, NodePods())

    def unreported(self, node: str, reservations: Reservations, spoken_of: tuple[Record, ...]) -> frozenset[PodKey]:
        """The reserved pods that may still run here and that the report does not cover.

        The reference drops these reservations with the others (scheduler plugin spec 17, defect 10)."""
        covered = {(record.namespace, record.name) for record in spoken_of}
        return frozenset(
            key
            for key, reservation in reservations.items()
            if key not in covered and self._is_on_its_way(key, reservation, node)
        )

    def _is_on_its_way(self, key: PodKey, reservation: Reservation, node: str) -> bool:
        # A pod that is not listed any more was deleted; a pod with another uid only has the same name.
        pod = self._by_key.get(key)
        return pod is not None and pod.metadata.uid == reservation.uid and podgroups.may_run_on(pod, node)


def confirmed(
    nrt: NodeResourceTopology, pods: NodePods, listed: frozenset[str], rules: Rules
) -> tuple[Record, ...] | None:
    """The pods that the report covers; None if it is not known to be current."""
    signature = reports.signature(nrt, rules.method)
    if not signature.text:
        return None
    judges = [records.judged(listed)]
    if signature.only_exclusive and Repair.PINNED_PODS in rules.repairs:
        judges.append(records.judged_as_on_node(nrt))
    return next((found for found in _readings(pods, judges, rules) if records.signed(found, signature)), None)


def trusted(pods: NodePods, listed: frozenset[str]) -> tuple[Record, ...]:
    """The pods that a report is assumed to cover if no fingerprint is required."""
    return tuple(records.of(pod, records.judged(listed)) for pod in pods.relevant)


def _readings(pods: NodePods, judges: list[Judge], rules: Rules) -> Iterator[tuple[Record, ...]]:
    for group in podgroups.expected(pods, rules.repairs):
        for judge in judges:
            yield tuple(records.of(pod, judge) for pod in group)
