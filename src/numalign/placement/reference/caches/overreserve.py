"""The cache that charges each pod of this scheduler to every zone of its node until a report covers it.

It is not known which zone the kubelet will choose, so a look-up is the report of the last refresh less all reservations
since, in each zone. A node that Filter rejected, or that got foreign pods, is refreshed by the first round of
`resync` that finds a report with the fingerprint of the node's pods; until then foreign pods close the node (scheduler
plugin spec 13). The stalls of the reference are fixed, see `repairs`."""

import math
from collections.abc import Iterable

from msgspec import Struct

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference import demand
from numalign.placement.reference.caches import foreignpods, ledger, podgroups, reports, resync
from numalign.placement.reference.caches.cache import Cache, Lookup, Placement, Reports
from numalign.placement.reference.caches.ledger import Marks, Reservation, ReservationLedger
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.resync import Cluster, Refresh, Round
from numalign.placement.reference.caches.rules import Rules


class Desynced(Struct, frozen=True):
    """The nodes that wait for a refresh, in alphabetical order."""

    maybe_over_reserved: tuple[str, ...] = ()
    settings_changed: tuple[str, ...] = ()


class OverReserve(Cache):
    def __init__(self, rules: Rules, nrts: Iterable[NodeResourceTopology] = ()) -> None:
        self.rules = rules
        self.ledger = ReservationLedger(nrts)
        self.marks = Marks()
        self.generation = 0
        self.moment = 0
        """Grows with every reservation and mark; a caller that reads the cluster itself notes it before."""
        self._gone: dict[str, int] = {}
        self._due = -math.inf

    def look_up(self, node: str) -> Lookup:
        if node not in self.ledger:
            return Lookup(generation=self.generation)
        if node in self.marks.foreign:
            return Lookup(fresh=False, generation=self.generation)
        return Lookup(self.ledger.reduced(node), generation=self.generation)

    def placement(self, node: str) -> Placement | None:
        return self.ledger.placement(node) if node in self.ledger else None

    def desynced(self) -> Desynced:
        dirty = self.marks.rejected.keys() | (self.marks.foreign.keys() & self.ledger.nodes())
        return Desynced(tuple(sorted(dirty)), tuple(sorted(self.marks.settings)))

    def nrt_added(self, nrt: NodeResourceTopology) -> None:
        # As in the reference, an added report is not compared with the cached one; the next round does that.
        if nrt.metadata.name not in self.ledger and Repair.LATE_REPORT in self.rules.repairs:
            self.ledger.put(ledger.entry(nrt))

    def nrt_changed(self, nrt: NodeResourceTopology) -> None:
        node = nrt.metadata.name
        if node not in self.ledger:
            self.nrt_added(nrt)
        elif self.rules.follows_settings and reports.has_other_settings(self.ledger[node].nrt, nrt):
            self.marks.settings[node] = self._next_moment()

    def nrt_gone(self, node: str) -> None:
        if Repair.REPORT_GONE not in self.rules.repairs:
            return
        self._gone[node] = self._next_moment()
        self.ledger.forget(node)
        self.marks.rejected.pop(node, None)
        self.marks.settings.pop(node, None)

    def pod_seen(self, pod: Pod) -> None:
        node = pod.spec.node_name
        if foreignpods.is_foreign(pod, self.ledger.listed(node), self.rules.profiles, self.rules.detect):
            self.has_foreign_pods(node)

    def pod_gone(self, pod: Pod) -> None:
        self.pod_seen(pod)

    def has_foreign_pods(self, node: str) -> None:
        if node in self.ledger or Repair.LATE_REPORT in self.rules.repairs:
            self.marks.foreign[node] = self._next_moment()

    def rejected(self, node: str) -> None:
        self.marks.rejected[node] = self._next_moment()

    def reserve(self, node: str, pod: Pod) -> None:
        if node in self.ledger:
            reservation = Reservation(pod.metadata.uid, demand.effective(pod), self._next_moment())
            self.ledger.reserve(node, self.ledger.reservations(node) | {podgroups.key_of(pod): reservation})

    def unreserve(self, node: str, pod: Pod) -> None:
        reserved = self.ledger.reservations(node)
        if podgroups.key_of(pod) in reserved:
            self.ledger.reserve(node, {key: reserved[key] for key in reserved if key != podgroups.key_of(pod)})

    def due(self) -> float:
        return self._due

    def resync(self, nrts: Reports, pods: Iterable[Pod], now: float) -> tuple[str, ...]:
        known = tuple(pods)
        refreshed = self.commit(self.prepare(nrts, known))
        self._forget_vacant(known)
        self._due = now + self.rules.period
        return refreshed

    def prepare(self, nrts: Reports, pods: Iterable[Pod], moment: int | None = None) -> Round:
        """The effects of a round. `moment`: the cache's moment when reports and pods were read, if that was earlier."""
        late = tuple(nrts[node] for node in sorted(nrts.keys() - self.ledger.nodes()))
        changed = self._with_other_settings(nrts)
        dirty = nrts.keys() & (changed | self.marks.rejected.keys() | self.marks.foreign.keys())
        cluster = Cluster(nrts, pods if dirty else (), self.rules)
        candidates = (self._refresh_of(node, cluster, checked=node not in changed) for node in sorted(dirty))
        refreshes = tuple(refresh for refresh in candidates if refresh is not None)
        return Round(self.moment if moment is None else moment, refreshes, late)

    def commit(self, round: Round) -> tuple[str, ...]:
        """Carries out a round; returns the refreshed nodes, on which rejected pods may fit now."""
        refreshed = [each for each in round.refreshes if not self._is_gone_since(each.nrt, round)]
        for refresh in refreshed:
            self._refresh(refresh, round.moment if Repair.RESYNC_WINDOW in self.rules.repairs else math.inf)
        for nrt in round.late:
            if not self._is_gone_since(nrt, round):
                self.nrt_added(nrt)
        self._gone.clear()
        self.generation += bool(refreshed)
        return tuple(each.nrt.metadata.name for each in refreshed)

    def _refresh_of(self, node: str, cluster: Cluster, *, checked: bool) -> Refresh | None:
        nrt, pods, listed = cluster.nrts[node], cluster.pods_of(node), self.ledger.listed(node)
        spoken_of = resync.confirmed(nrt, pods, listed, self.rules) if checked else resync.trusted(pods, listed)
        if spoken_of is None:
            return None
        reserved = self.ledger.reservations(node) if Repair.UNREPORTED_POD in self.rules.repairs else {}
        return Refresh(nrt, spoken_of, cluster.unreported(node, reserved, spoken_of))

    def _refresh(self, refresh: Refresh, until: float) -> None:
        node = refresh.nrt.metadata.name
        reserved = self.ledger.reservations(node)
        kept = {key for key in reserved if reserved[key].moment > until or key in refresh.unreported}
        self.ledger.put(ledger.entry(refresh.nrt, refresh.records if self.rules.keeps_records else ()))
        self.ledger.reserve(node, {key: reserved[key] for key in reserved if key in kept})
        self.marks.clear(node, until)

    def _forget_vacant(self, pods: tuple[Pod, ...]) -> None:
        # A mark of a node without a report is kept for as long as the node has pods.
        unseen = self.marks.foreign.keys() - self.ledger.nodes()
        for node in unseen - {pod.spec.node_name for pod in pods} if unseen else ():
            del self.marks.foreign[node]

    def _with_other_settings(self, nrts: Reports) -> set[str]:
        marked = set(self.marks.settings)
        if not self.rules.follows_settings or Repair.MISSED_SETTINGS not in self.rules.repairs:
            return marked
        both = nrts.keys() & self.ledger.nodes()
        return marked | {node for node in both if reports.has_other_settings(self.ledger[node].nrt, nrts[node])}

    def _is_gone_since(self, nrt: NodeResourceTopology, round: Round) -> bool:
        return self._gone.get(nrt.metadata.name, round.moment) > round.moment

    def _next_moment(self) -> int:
        self.moment += 1
        return self.moment
