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
from numalign.kubelet import demand
from numalign.placement.columns.holdings import Holding
from numalign.placement.columns.nodefacts import Assumption, RowFacts
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
    """A decision that changed the holdings of other pods on the node."""

    uid: str
    node: str
    before: tuple[Holding, ...]


class Ledger:
    """The ledgers of all nodes. `problems` and `divergences` count what contradicted expectations."""

    def __init__(self, resources: Resources, shapes: Shapes, placer: Placer) -> None:
        self.divergences = Divergences()
        self._unobserved = UnobservedPods(resources, shapes)
        self._foreign = ForeignPods(self._unobserved, placer)
        self._node_ledgers: dict[str, NodeLedger] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        """By uid: where it has a record. More than one node is never legal, and survived."""
        self.ended = EndedPods()
        self.revisions: deque[Revision] = deque(maxlen=MOST_REVISIONS)
        """The latest; dumps use them to undo a decision."""
        self._count = 0

    @property
    def problems(self) -> Counter[Problem]:
        return self._unobserved.problems

    def row(self, node: str) -> Row | None:
        """What is free on the node; None: it has no report."""
        node_ledger = self._node_ledgers.get(node)
        if node_ledger is None:
            return None
        self._settle(node_ledger)
        return node_ledger.row(self._unobserved.resources)

    def node(self, name: str) -> NodeLedger | None:
        """The ledger of a node; None: there is none."""
        return self._node_ledgers.get(name)

    def facts(self, node: str) -> RowFacts | None:
        """The node's report."""
        node_ledger = self._node_ledgers.get(node)
        return node_ledger.facts if node_ledger else None

    def report(self, facts: RowFacts, *, again: bool = False) -> Change:
        """A node's report was added or changed; pods that wait for room there may be tried again.

        `again`: the report is the same as before, and only its interpretation changed."""
        node_ledger = self._node_dump(facts.node)
        if reconcile.is_repeated(node_ledger, facts):
            return Change((), (facts.node,))
        # While the kubelet is away, the agent repeats what it knew: that is no new observation of the node.
        again = again or (Assumption.KUBELET_AWAY in facts.assumptions and node_ledger.facts is not None)
        findings = reconcile.take(node_ledger, facts, self._unobserved, again=again)
        self._note(node_ledger, findings)
        return Change((facts.node,), (facts.node,), tuple(findings.divergences))

    def report_gone(self, node: str) -> Change:
        node_ledger = self._node_ledgers.get(node)
        if node_ledger is None or node_ledger.facts is None:
            return NOTHING
        node_ledger.drop_report()
        for record in [record for record in node_ledger.records.values() if record.life is PodLife.ENDED]:
            self._strike(node_ledger, record)
        self._close(node_ledger)
        return Change((node,))

    def predict(self, node: str, pod: Pod, holding: Holding, revised: Sequence[Holding] = ()) -> Change:
        """Enters a decision of this scheduler, with the changed holdings of pods that are pending on the node."""
        node_ledger = self._node_dump(node)
        self._settle(node_ledger)
        record = self._record(node_ledger, pod)
        record.holding, record.after = holding, node_ledger.report_count
        node_ledger.put(record)
        if revised:
            self.revisions.append(Revision(record.uid, node, _as_they_are(node_ledger, revised)))
            self._foreign.revise(node_ledger, revised)
        return Change((node,))

    def seen(self, pod: Pod, now: float, forecast: Forecast | None = None) -> Change:
        """A pod was added or changed. `forecast`: its predicted zones, if the pod is new to this process."""
        uid, node = demand.identity(pod), pod.spec.node_name
        if not node or uid in self.ended:
            return NOTHING
        if pod.status.is_finished:
            return self._finish(uid, pod, now)
        known = self._nodes.get(uid, ())
        if node in known:
            self._note_termination(self._node_ledgers[node], pod, now)
            return self._update(self._node_ledgers[node], uid, pod)
        if known:
            self.problems[Problem.POD_ON_TWO_NODES] += 1
        change = self._found(pod, forecast)
        self._note_termination(self._node_ledgers[node], pod, now)
        return change

    def _found(self, pod: Pod, forecast: Forecast | None) -> Change:
        """Enters a running pod that was not on its node before."""
        node = pod.spec.node_name
        node_ledger = self._node_dump(node)
        record = self._record(node_ledger, pod)
        record.bound, record.found, record.forecast = True, pod.has_started, forecast
        if record.found:
            record.start(node_ledger.report_count, self._next())
        node_ledger.find(record)
        # Free amounts of a node without a report are not known anyway.
        return Change((node,)) if node_ledger.facts is not None else NOTHING

    def assumed(self, pod: Pod) -> Change:
        """Enters a pod that the scheduler assigned by node totals and that is not bound yet."""
        change = self._found(pod, None)
        self._node_ledgers[pod.spec.node_name].records[demand.identity(pod)].bound = False
        return change

    def gone(self, pod: Pod, now: float) -> Change:
        """A pod's object was deleted; what it holds is free once its containers have surely stopped."""
        uid = demand.identity(pod)
        self.ended.note(uid, now)
        self._forget_remains(pod, uid)
        found = self._records_of(uid)
        stopped = [each for each in found if pod.has_stopped or not (pod.spec.node_name or each[1].bound)]
        running = [each for each in found if each not in stopped and each[1].life is PodLife.LIVE]
        change = self._end(stopped)
        for node_ledger, record in running:
            self._linger(node_ledger, record, pod, now)
        return Change((*change.rows, *(node_ledger.node for node_ledger, _ in running)), change.freed)

    def bind_failed(self, uid: str) -> Change:
        """A decision was not carried out; ignored if the API server has shown the pod on the node."""
        found = [(node_ledger, record) for node_ledger, record in self._records_of(uid) if not record.bound]
        for node_ledger, record in found:
            self._strike(node_ledger, record)
        nodes = tuple(node_ledger.node for node_ledger, _ in found)
        return Change(nodes, nodes)

    def tick(self, now: float) -> Change:
        """Time passed: grace periods end, pods that no report ever had are forgotten, no pod waits for slow ones."""
        long_gone = [each for uid in self.ended.forgotten(now) for each in self._records_of(uid)]
        for node_ledger, known in long_gone:
            if known.life is PodLife.ENDED and known.cover is Cover.NO:
                self._strike(node_ledger, known)
        due: list[tuple[NodeLedger, PodRecord]] = []
        slow: list[str] = []
        for until, uid, node in self.ended.due(now):
            there = self._node_ledgers.get(node)
            record = there.records.get(uid) if there is not None else None
            if there is None or record is None:
                continue
            if record.life is PodLife.LINGERING and record.until == until:
                due.append((there, record))
            elif there.terminating.get(uid):
                there.terminating[uid] = False
                slow.append(node)
        change = self._end(due)
        return Change((*change.rows, *slow), (*change.freed, *slow))

    @contextmanager
    def without(self, uids: Iterable[str]) -> Iterator[Change]:
        """The ledger as if these pods had ended; their rows must be read again inside the context and after it."""
        found = [
            (node_ledger, record) for uid in uids for node_ledger, record in self._records_of(uid) if not record.absent
        ]
        for node_ledger, record in found:
            self._settle(node_ledger)
            record.absent = True
            reconcile.refresh(node_ledger, record, self._unobserved)
        nodes = tuple(dict.fromkeys(node_ledger.node for node_ledger, _ in found))
        try:
            yield Change(nodes, nodes)
        finally:
            for node_ledger, record in reversed(found):
                record.absent = False
                if node_ledger.records.get(record.uid) is record:
                    reconcile.refresh(node_ledger, record, self._unobserved)

    def holding(self, uid: str) -> Holding | None:
        """What a pod holds, as far as it is known."""
        for node_ledger, record in self._records_of(uid):
            self._settle(node_ledger)
            if record.life is PodLife.LIVE:
                return record.holding
        return None

    def shapes(self) -> set[int]:
        """Shape numbers of all holdings, including those that a reverted decision would restore."""
        holdings = [
            record.holding for node_ledger in self.nodes() for record in node_ledger.records.values() if record.holding
        ]
        before = [holding for revision in self.revisions for holding in revision.before]
        return {holding.shape for holding in (*holdings, *before)}

    def forget_shapes(self) -> None:
        """Drops cached data of shapes that are no longer kept."""
        self._unobserved.forget_shapes()

    def nodes(self) -> Sequence[NodeLedger]:
        """The ledgers of all nodes."""
        return tuple(self._node_ledgers.values())

    def adopt(self, node_ledger: NodeLedger) -> None:
        """Replaces the ledger of a node by one of a dump."""
        before = self._node_ledgers.get(node_ledger.node)
        for uid in before.records if before is not None else ():
            self._unlink(uid, node_ledger.node)
        self._node_ledgers[node_ledger.node] = node_ledger
        for record in node_ledger.records.values():
            self._link(record.uid, node_ledger.node)
            self._count = max(self._count, record.order, record.end_order)

    def _note_termination(self, node_ledger: NodeLedger, pod: Pod, now: float) -> None:
        uid = demand.identity(pod)
        is_running = node_ledger.records[uid].life is PodLife.LIVE
        if pod.metadata.deletion_timestamp is not None and is_running and uid not in node_ledger.terminating:
            node_ledger.terminating[uid] = True
            self.ended.expect(uid, node_ledger.node, now)

    def _update(self, node_ledger: NodeLedger, uid: str, pod: Pod) -> Change:
        record = node_ledger.records[uid]
        was_pending, hidden = record.is_pending, record.hidden
        record.pod, record.bound = pod, True
        is_start = record.started is None and pod.has_started
        if not is_start and record.life is PodLife.LIVE and not record.absent and not pod.spec.init_containers:
            return NOTHING  # all that it counts for follows from what it holds
        if is_start:
            record.start(node_ledger.report_count, self._next())
        reconcile.refresh(node_ledger, record, self._unobserved)
        same = was_pending == record.is_pending and hidden == record.hidden
        return NOTHING if same else Change((node_ledger.node,), () if hidden == record.hidden else (node_ledger.node,))

    def _finish(self, uid: str, pod: Pod, now: float) -> Change:
        self.ended.note(uid, now)
        found = self._records_of(uid)
        wrong = [_refused(node_ledger, record, pod) for node_ledger, record in found if _is_refusal(record, pod)]
        self.divergences.add(wrong)
        change = self._end(found)
        self._node_dump(pod.spec.node_name).remains[uid] = _hash(pod)
        return structs.replace(change, divergences=tuple(wrong))

    def _end(self, found: Sequence[tuple[NodeLedger, PodRecord]]) -> Change:
        found = [(node_ledger, record) for node_ledger, record in found if record.life is not PodLife.ENDED]
        for node_ledger, record in found:
            self._settle(node_ledger)
            node_ledger.terminating.pop(record.uid, None)
            if record.holding is not None and record.holding.interchangeable:
                reconcile.part(node_ledger, self._unobserved)
            node_ledger.doubt(record)
            # A pod that lingered left the node's reports when its object was deleted.
            order = self._next() if record.life is PodLife.LIVE else record.end_order
            record.end(PodLife.ENDED, node_ledger.report_count, order)
            if node_ledger.facts is None:
                self._strike(node_ledger, record)
            else:
                reconcile.refresh(node_ledger, record, self._unobserved)
        nodes = tuple(node_ledger.node for node_ledger, _ in found)
        return Change(nodes, nodes)

    def _linger(self, node_ledger: NodeLedger, record: PodRecord, pod: Pod, now: float) -> None:
        self._settle(node_ledger)
        node_ledger.terminating.pop(record.uid, None)
        node_ledger.doubt(record)
        record.until = self.ended.wait_for(pod, record.uid, node_ledger.node, now)
        record.end(PodLife.LINGERING, node_ledger.report_count, self._next())
        reconcile.refresh(node_ledger, record, self._unobserved)

    def _settle(self, node_ledger: NodeLedger) -> None:
        """Does deferred work: judges pods that the report may cover, and places the others with the model."""
        if node_ledger.facts is None:
            return
        if node_ledger.unjudged:
            self._note(node_ledger, reconcile.judge(node_ledger, node_ledger.facts, self._unobserved))
        if node_ledger.unplaced:
            self._foreign.place(node_ledger, node_ledger.facts)

    def _note(self, node_ledger: NodeLedger, findings: ReconcileResult) -> None:
        self.divergences.add(findings.divergences)
        if findings.vanished:
            self.problems[Problem.ZONE_VANISHED] += findings.vanished
        for uid in findings.struck:
            self._unlink(uid, node_ledger.node)

    def _record(self, node_ledger: NodeLedger, pod: Pod) -> PodRecord:
        """The pod's record on the node, a new one if it has none."""
        uid = demand.identity(pod)
        self._link(uid, node_ledger.node)
        return node_ledger.records.get(uid) or PodRecord(
            uid=uid, name=pod.metadata.full_name, order=self._next(), pod=pod
        )

    def _records_of(self, uid: str) -> list[tuple[NodeLedger, PodRecord]]:
        node_ledgers = (self._node_ledgers[node] for node in sorted(self._nodes.get(uid, ())))
        return [(node_ledger, node_ledger.records[uid]) for node_ledger in node_ledgers]

    def _strike(self, node_ledger: NodeLedger, record: PodRecord) -> None:
        node_ledger.strike(record.uid)
        self._unlink(record.uid, node_ledger.node)
        self._close(node_ledger)

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
        node_ledger = self._node_ledgers.get(pod.spec.node_name)
        if node_ledger is not None:
            node_ledger.remains.pop(uid, None)
            self._close(node_ledger)

    def _node_dump(self, node: str) -> NodeLedger:
        if node not in self._node_ledgers:
            self._node_ledgers[node] = NodeLedger(node)
        return self._node_ledgers[node]

    def _close(self, node_ledger: NodeLedger) -> None:
        if node_ledger.facts is None and not node_ledger.records and not node_ledger.remains:
            self._node_ledgers.pop(node_ledger.node, None)

    def _next(self) -> int:
        self._count += 1
        return self._count


def _as_they_are(node_ledger: NodeLedger, revised: Iterable[Holding]) -> tuple[Holding, ...]:
    records = (node_ledger.records.get(each.uid) for each in revised)
    return tuple(record.holding for record in records if record is not None and record.holding is not None)


def _hash(pod: Pod) -> int:
    return fingerprint.pod_hash(pod.metadata.namespace, pod.metadata.name)


def _is_refusal(record: PodRecord, pod: Pod) -> bool:
    return record.is_predicted and record.started is None and pod.status.reason in REFUSALS


def _refused(node_ledger: NodeLedger, record: PodRecord, pod: Pod) -> Divergence:
    return Divergence(kind=DivergenceKind.REFUSED, node=node_ledger.node, pod=record.name, reason=pod.status.reason)
