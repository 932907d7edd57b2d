"""The state of the over-reserve cache by node: the report, the reservations, and marks of nodes to refresh.

Every reservation and mark bears a moment, a number that only grows. A round of resync remembers the moment at which
it read the cluster, and what bears a later one survives it. Only `overreserve` writes here."""

from collections.abc import Iterable, KeysView
from typing import Final

from msgspec import Struct, field

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import requests
from numalign.api.objects.pod import ResourceList
from numalign.placement.reference import classes
from numalign.placement.reference.caches import placements, reports
from numalign.placement.reference.caches.cache import Placement
from numalign.placement.reference.caches.podgroups import PodKey
from numalign.placement.reference.caches.records import Record

NO_NAMES: Final[frozenset[str]] = frozenset()


class CacheEntry(Struct, frozen=True):
    """A report, the resources that any of its zones lists, and the pods that it spoke of (with preemption)."""

    nrt: NodeResourceTopology
    listed: frozenset[str]
    records: tuple[Record, ...] = ()


def entry(nrt: NodeResourceTopology, records: tuple[Record, ...] = ()) -> CacheEntry:
    return CacheEntry(nrt, classes.listed_by(nrt), records)


class Reservation(Struct, frozen=True):
    """What a pod of this scheduler takes until a report covers it."""

    uid: str
    amounts: ResourceList
    moment: int


Reservations = dict[PodKey, Reservation]


class ReservationLedger:
    """Reports and reservations by node. Reduced reports and placements are computed on request and cached."""

    def __init__(self, nrts: Iterable[NodeResourceTopology]) -> None:
        self._entries = {nrt.metadata.name: entry(nrt) for nrt in nrts}
        self._reservations: dict[str, Reservations] = {}
        self._reduced: dict[str, NodeResourceTopology] = {}
        self._placements: dict[str, Placement] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._entries

    def __getitem__(self, node: str) -> CacheEntry:
        return self._entries[node]

    def nodes(self) -> KeysView[str]:
        return self._entries.keys()

    def listed(self, node: str) -> frozenset[str]:
        return self._entries[node].listed if node in self._entries else NO_NAMES

    def put(self, entry: CacheEntry) -> None:
        """Replaces the node's report; reservations stay."""
        node = entry.nrt.metadata.name
        self._entries[node] = entry
        self._reduced.pop(node, None)
        self._placements.pop(node, None)

    def forget(self, node: str) -> None:
        for of_nodes in (self._entries, self._reservations, self._reduced, self._placements):
            of_nodes.pop(node, None)

    def reservations(self, node: str) -> Reservations:
        return self._reservations.get(node, {})

    def reserve(self, node: str, reservations: Reservations) -> None:
        """Replaces all reservations of the node."""
        self._reservations[node] = reservations
        self._reduced.pop(node, None)

    def reduced(self, node: str) -> NodeResourceTopology:
        if node not in self._reduced:
            self._reduced[node] = reports.reduced(self._entries[node].nrt, total(self.reservations(node)))
        return self._reduced[node]

    def placement(self, node: str) -> Placement:
        if node not in self._placements:
            known = self._entries[node]
            self._placements[node] = placements.read(known.nrt, known.records)
        return self._placements[node]


def total(reservations: Reservations) -> ResourceList:
    amounts: ResourceList = {}
    for reservation in reservations.values():
        amounts = requests.added(amounts, reservation.amounts)
    return amounts


class Marks(Struct):
    """Nodes to refresh, by the latest moment that marked them."""

    rejected: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    """Also kept for nodes without a report: their first report must be confirmed."""
    settings: dict[str, int] = field(default_factory=dict)

    def clear(self, node: str, until: float) -> None:
        for marked in (self.rejected, self.foreign, self.settings):
            if marked.get(node, until) <= until:
                marked.pop(node, None)
