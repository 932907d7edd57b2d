"""Which pod holds what in which zone of its node, and how certain that is.

`sync` is the only writer: it passes facts and decisions on. A pod's holding is observed (a report names it), predicted
(the model said so) or unknown (charged to every zone that it may be in). Each call returns the rows that changed and
the nodes where something came free. `row` gives the amounts by which the row model decides (engine spec 9). The ledger
does not track Node objects: pods and reports may arrive before their Node and outlive it. Time enters only as `now`.
No input makes the ledger raise."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, structs

from numalign.api.nrt import fingerprint
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand as demands
from numalign.placement.columns.holdings import Holding
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.facts import Forecast
from numalign.placement.ledger import reconcile
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.divergences import NOTHING, Change, Divergence, DivergenceKind, Divergences, Problem
from numalign.placement.ledger.foreignpods import ForeignPods, Placer
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.ledger.podrecord import EndedPods, PodRecord
from numalign.placement.ledger.reconcile import ReconcileResult
from numalign.placement.ledger.unobserved import UnobservedPods

MOST_REVISIONS: Final = 512
REFUSALS: Final = frozenset({"TopologyAffinityError", "UnexpectedAdmissionError", "SMTAlignmentError"})


class Revision(Struct, frozen=True):
    """A decision that changed what is known of other pods on the node."""

    uid: str
    node: str
    before: tuple[Holding, ...]


class Ledger:
    """All nodes' books. `problems` and `divergences` count what went against expectation."""

    def __init__(self, resources: Resources, shapes: Shapes, placer: Placer) -> None:
        self.divergences = Divergences()
        self._unobserved = UnobservedPods(resources, shapes)
        self._foreign = ForeignPods(self._unobserved, placer)
        self._books: dict[str, NodeLedger] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        """By uid: where it has a record. More than one node is never legal, and survived."""
        self._departures = EndedPods()
        self.revisions: deque[Revision] = deque(maxlen=MOST_REVISIONS)
        """The latest; dumps use them to undo a decision."""
        self._count = 0

    @property
    def problems(self) -> Counter[Problem]:
        return self._unobserved.problems

    def row(self, node: str) -> Row | None:
        """What is free on the node; None: it has no report."""
        book = self._books.get(node)
        if book is None:
            return None
        self._settle(book)
        return book.row(self._unobserved.resources)

    def node(self, name: str) -> NodeLedger | None:
        """None: nothing is known of the node."""
        return self._books.get(name)

    def facts(self, node: str) -> RowFacts | None:
        """The node's report."""
        book = self._books.get(node)
        return book.facts if book else None

    def report(self, facts: RowFacts, *, again: bool = False) -> Change:
        """A node's report was added or changed; pods that wait for room there may be tried again.

        `again`: the report is the one before, and is only read in another light."""
        book = self._book(facts.node)
        if reconcile.is_repeated(book, facts):
            return Change((), (facts.node,))
        findings = reconcile.take(book, facts, self._unobserved, again=again)
        self._note(book, findings)
        return Change((facts.node,), (facts.node,), tuple(findings.divergences))

    def report_gone(self, node: str) -> Change:
        book = self._books.get(node)
        if book is None or book.facts is None:
            return NOTHING
        book.drop_report()
        for record in [record for record in book.records.values() if record.life is PodLife.ENDED]:
            self._strike(book, record)
        self._close(book)
        return Change((node,))

    def predict(self, node: str, pod: Pod, holding: Holding, revised: Sequence[Holding] = ()) -> Change:
        """A decision of ours, with what it changes for pods that are pending on the node."""
        book = self._book(node)
        self._settle(book)
        record = self._record(book, pod)
        record.holding, record.after = holding, book.report_count
        book.put(record)
        if revised:
            self.revisions.append(Revision(record.uid, node, _as_they_are(book, revised)))
            self._foreign.revise(book, revised)
        return Change((node,))

    def seen(self, pod: Pod, now: float, forecast: Forecast | None = None) -> Change:
        """A pod was added or changed. `forecast`: where it was to go, if it is new to us."""
        uid, node = demands.identity(pod), pod.spec.node_name
        if not node or uid in self._departures:
            return NOTHING
        if pod.status.is_finished:
            return self._finish(uid, pod, now)
        known = self._nodes.get(uid, ())
        if node in known:
            return self._update(self._books[node], uid, pod)
        if known:
            self.problems[Problem.POD_ON_TWO_NODES] += 1
        return self._found(pod, forecast)

    def _found(self, pod: Pod, forecast: Forecast | None) -> Change:
        """The same for a pod that is alive, and was not known to be on its node."""
        node = pod.spec.node_name
        book = self._book(node)
        record = self._record(book, pod)
        record.bound, record.found, record.forecast = True, pod.has_started, forecast
        if record.found:
            record.start(book.report_count, self._next())
        book.find(record)
        # What is free on a node without a report is not known anyway.
        return Change((node,)) if book.facts is not None else NOTHING

    def assumed(self, pod: Pod) -> Change:
        """The same for a pod that the scheduler assigned there by node totals, and that is not bound yet."""
        change = self._found(pod, None)
        self._books[pod.spec.node_name].records[demands.identity(pod)].bound = False
        return change

    def gone(self, pod: Pod, now: float) -> Change:
        """A pod's object was deleted; what it holds is free once its containers have surely stopped."""
        uid = demands.identity(pod)
        self._departures.note(uid, now)
        self._forget_remains(pod, uid)
        found = self._records_of(uid)
        stopped = [each for each in found if pod.has_stopped or not (pod.spec.node_name or each[1].bound)]
        running = [each for each in found if each not in stopped and each[1].life is PodLife.LIVE]
        change = self._end(stopped)
        for book, record in running:
            self._linger(book, record, pod, now)
        return Change((*change.rows, *(book.node for book, _ in running)), change.freed)

    def bind_failed(self, uid: str) -> Change:
        """A decision of ours did not come about, unless the API server showed that it did."""
        found = [(book, record) for book, record in self._records_of(uid) if not record.bound]
        for book, record in found:
            self._strike(book, record)
        nodes = tuple(book.node for book, _ in found)
        return Change(nodes, nodes)

    def tick(self, now: float) -> Change:
        """Time passed: grace periods end, and pods that no report ever had are forgotten."""
        long_gone = [each for uid in self._departures.forgotten(now) for each in self._records_of(uid)]
        for book, known in long_gone:
            if known.life is PodLife.ENDED and known.cover is Cover.NO:
                self._strike(book, known)
        due: list[tuple[NodeLedger, PodRecord]] = []
        for until, uid, node in self._departures.due(now):
            record = self._books[node].records.get(uid) if node in self._books else None
            if record is not None and record.life is PodLife.LINGERING and record.until == until:
                due.append((self._books[node], record))
        return self._end(due)

    @contextmanager
    def without(self, uids: Iterable[str]) -> Iterator[Change]:
        """The ledger as if these pods had ended; their rows are to be read again inside and after."""
        found = [(book, record) for uid in uids for book, record in self._records_of(uid) if not record.absent]
        for book, record in found:
            self._settle(book)
            record.absent = True
            reconcile.refresh(book, record, self._unobserved)
        nodes = tuple(dict.fromkeys(book.node for book, _ in found))
        try:
            yield Change(nodes, nodes)
        finally:
            for book, record in reversed(found):
                record.absent = False
                if book.records.get(record.uid) is record:
                    reconcile.refresh(book, record, self._unobserved)

    def holding(self, uid: str) -> Holding | None:
        """What a pod holds, as far as it is known."""
        for book, record in self._records_of(uid):
            self._settle(book)
            if record.life is PodLife.LIVE:
                return record.holding
        return None

    def shapes(self) -> set[int]:
        """Numbers of all that pods hold by, or did before a decision that may be taken back."""
        holdings = [record.holding for book in self.nodes() for record in book.records.values() if record.holding]
        before = [holding for revision in self.revisions for holding in revision.before]
        return {holding.shape for holding in (*holdings, *before)}

    def forget_shapes(self) -> None:
        """Some of them are not needed any more."""
        self._unobserved.forget_shapes()

    def nodes(self) -> Sequence[NodeLedger]:
        """All of them."""
        return tuple(self._books.values())

    def adopt(self, book: NodeLedger) -> None:
        """The node's page as another ledger had it, in place of our own."""
        before = self._books.get(book.node)
        for uid in before.records if before is not None else ():
            self._unlink(uid, book.node)
        self._books[book.node] = book
        for record in book.records.values():
            self._link(record.uid, book.node)
            self._count = max(self._count, record.order, record.end_order)

    def _update(self, book: NodeLedger, uid: str, pod: Pod) -> Change:
        record = book.records[uid]
        was_pending, hidden = record.is_pending, record.hidden
        record.pod, record.bound = pod, True
        is_start = record.started is None and pod.has_started
        if not is_start and record.life is PodLife.LIVE and not record.absent and not pod.spec.init_containers:
            return NOTHING  # all that it counts for follows from what it holds
        if is_start:
            record.start(book.report_count, self._next())
        reconcile.refresh(book, record, self._unobserved)
        same = was_pending == record.is_pending and hidden == record.hidden
        return NOTHING if same else Change((book.node,), () if hidden == record.hidden else (book.node,))

    def _finish(self, uid: str, pod: Pod, now: float) -> Change:
        self._departures.note(uid, now)
        found = self._records_of(uid)
        wrong = [_refused(book, record, pod) for book, record in found if _is_refusal(record, pod)]
        self.divergences.add(wrong)
        change = self._end(found)
        self._book(pod.spec.node_name).remains[uid] = _hash(pod)
        return structs.replace(change, divergences=tuple(wrong))

    def _end(self, found: Sequence[tuple[NodeLedger, PodRecord]]) -> Change:
        found = [(book, record) for book, record in found if record.life is not PodLife.ENDED]
        for book, record in found:
            self._settle(book)
            if record.holding is not None and record.holding.interchangeable:
                reconcile.part(book, self._unobserved)
            book.doubt(record)
            # A pod that lingered left the node's reports when its object was deleted.
            order = self._next() if record.life is PodLife.LIVE else record.end_order
            record.end(PodLife.ENDED, book.report_count, order)
            if book.facts is None:
                self._strike(book, record)
            else:
                reconcile.refresh(book, record, self._unobserved)
        nodes = tuple(book.node for book, _ in found)
        return Change(nodes, nodes)

    def _linger(self, book: NodeLedger, record: PodRecord, pod: Pod, now: float) -> None:
        self._settle(book)
        book.doubt(record)
        record.until = self._departures.wait_for(pod, record.uid, book.node, now)
        record.end(PodLife.LINGERING, book.report_count, self._next())
        reconcile.refresh(book, record, self._unobserved)

    def _settle(self, book: NodeLedger) -> None:
        """Do what was put off: judge pods that the report may know, ask the model about those that it does not."""
        if book.facts is None:
            return
        if book.unjudged:
            self._note(book, reconcile.judge(book, book.facts, self._unobserved))
        self._foreign.place(book, book.facts)

    def _note(self, book: NodeLedger, findings: ReconcileResult) -> None:
        self.divergences.add(findings.divergences)
        if findings.vanished:
            self.problems[Problem.ZONE_VANISHED] += findings.vanished
        for uid in findings.struck:
            self._unlink(uid, book.node)

    def _record(self, book: NodeLedger, pod: Pod) -> PodRecord:
        """The pod's record on the node, a new one if it has none."""
        uid = demands.identity(pod)
        self._link(uid, book.node)
        return book.records.get(uid) or PodRecord(uid=uid, name=pod.metadata.full_name, order=self._next(), pod=pod)

    def _records_of(self, uid: str) -> list[tuple[NodeLedger, PodRecord]]:
        books = (self._books[node] for node in sorted(self._nodes.get(uid, ())))
        return [(book, book.records[uid]) for book in books]

    def _strike(self, book: NodeLedger, record: PodRecord) -> None:
        book.strike(record.uid)
        self._unlink(record.uid, book.node)
        self._close(book)

    def _link(self, uid: str, node: str) -> None:
        known = self._nodes.get(uid, ())
        if node not in known:
            self._nodes[uid] = (*known, node)

    def _unlink(self, uid: str, node: str) -> None:
        left = tuple(each for each in self._nodes[uid] if each != node)
        if left:
            self._nodes[uid] = left
        else:
            del self._nodes[uid]

    def _forget_remains(self, pod: Pod, uid: str) -> None:
        book = self._books.get(pod.spec.node_name)
        if book is not None:
            book.remains.pop(uid, None)
            self._close(book)

    def _book(self, node: str) -> NodeLedger:
        if node not in self._books:
            self._books[node] = NodeLedger(node)
        return self._books[node]

    def _close(self, book: NodeLedger) -> None:
        if book.facts is None and not book.records and not book.remains:
            self._books.pop(book.node, None)

    def _next(self) -> int:
        self._count += 1
        return self._count


def _as_they_are(book: NodeLedger, revised: Iterable[Holding]) -> tuple[Holding, ...]:
    records = (book.records.get(each.uid) for each in revised)
    return tuple(record.holding for record in records if record is not None and record.holding is not None)


def _hash(pod: Pod) -> int:
    return fingerprint.pod_hash(pod.metadata.namespace, pod.metadata.name)


def _is_refusal(record: PodRecord, pod: Pod) -> bool:
    return record.is_predicted and record.started is None and pod.status.reason in REFUSALS


def _refused(book: NodeLedger, record: PodRecord, pod: Pod) -> Divergence:
    return Divergence(kind=DivergenceKind.REFUSED, node=book.node, pod=record.name, reason=pod.status.reason)
