"""Keeps the columns in step with the ledger.

The exact flavour brings facts and decisions here and reads rows; no other module writes to the ledger. A node that
changed is read from the ledger once before the next decision, however many facts were about it. A decision that was
charged to the columns enters the ledger at once, and its row need not be read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import gt

from msgspec import structs

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kubelet import demand
from numalign.placement.columns.columns import NONE_PENDING, Columns
from numalign.placement.columns.holdings import Holding
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.shapes import Shapes
from numalign.placement.columns.templates import Template
from numalign.placement.decisions import NOTHING, Decision, Wake, WakeCause
from numalign.placement.facts import (
    BindFailed,
    Fact,
    NodeGone,
    NodeSeen,
    PodAssumed,
    PodBound,
    PodGone,
    PodSeen,
    ReportGone,
    ReportRepeated,
    ReportSeen,
    Tick,
)
from numalign.placement.ledger import rows
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.divergences import Change
from numalign.placement.ledger.foreignpods import Placer
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.nodeledger import NodeLedger, Row
from numalign.placement.reports import deletedreports, nodesettings, read
from numalign.placement.reports.deletedreports import DeletedReports, Machine
from numalign.placement.reports.read import ReportReader
from numalign.placement.rowmodel.state import RowState

Reviser = Callable[[Row], Sequence[Holding]]
"""Pending pods that may get other zones than predicted, because the row has more free."""


class LedgerSync:
    """Applies facts to the ledger and keeps the columns up to date with it."""

    def __init__(
        self, columns: Columns, shapes: Shapes, placer: Placer, reviser: Reviser, deleted: DeletedReports
    ) -> None:
        self.columns = columns
        self._reviser, self._deleted = reviser, deleted
        self.ledger = Ledger(columns.resources, shapes, placer)
        self._nodes: dict[str, Node] = {}
        """What reports are read with, and nothing else of the Nodes."""
        self._machines: dict[str, Machine] = {}
        self._outlived: dict[str, str] = {}
        """By name, the uids of Nodes that are gone, or replaced by another one, since their report was written."""
        self._reports: dict[str, NodeTopology] = {}
        """Those with facts of our agent: from them a kubelet can be restored."""
        self._reader = ReportReader()
        self._stale: dict[str, None] = {}
        self._lingering: dict[str, str] = {}
        """Pods that are gone and may still run, with their nodes."""
        self._described: dict[int, RowFacts] = {}
        self._loose: dict[int, Row] = {}
        """Rows that the row model will be asked about, until it is."""
        self._states: dict[int, RowState] = {}
        self._alike: dict[int, list[Holding]] = {}

    # Facts

    def apply(self, fact: Fact) -> list[Wake]:
        # Most facts are these two. A pod that is bound was charged when it was decided.
        if isinstance(fact, PodSeen):
            return self.changed(self.ledger.seen(fact.pod, fact.now, fact.forecast))
        return [] if isinstance(fact, PodBound) else self._apply_rarer(fact)

    def _apply_rarer(self, fact: Fact) -> list[Wake]:
        match fact:
            case NodeSeen(node=node):
                return self._node(node)
            case NodeGone(name=name):
                self._node_gone(name)
            case ReportSeen(topology=topology):
                return self._report(topology)
            case ReportRepeated(node=name):
                return self._report_again(name)
            case ReportGone(node=name, now=now):
                return self._report_gone(name, now)
            case PodAssumed(pod=pod):
                return self.changed(self.ledger.assumed(pod))
            case PodGone(pod=pod, now=now):
                return self._gone(pod, now)
            case BindFailed(uid=uid):
                return self.changed(self.ledger.bind_failed(uid))
            case Tick(now=now):
                wakes = self._tick(now)
                # Done here and not before the next pod, which may be the first one of a new leader.
                self.refresh()
                return wakes
        return []

    def changed(self, change: Change) -> list[Wake]:
        self._note(change)
        return [Wake(node, WakeCause.FREED) for node in change.freed]

    def _note(self, change: Change) -> None:
        for name in change.rows:
            self._stale[name] = None

    def charges(self, uid: str) -> bool:
        """Whether a deleted pod may still be running."""
        return uid in self._lingering

    def _gone(self, pod: Pod, now: float) -> list[Wake]:
        change = self.ledger.gone(pod, now)
        if set(change.rows) - set(change.freed):
            self._lingering[demand.identity(pod)] = pod.spec.node_name
        return self.changed(change)

    def _tick(self, now: float) -> list[Wake]:
        wakes = [wake for name in self._deleted.expired(now) for wake in self.drop_report(name)]
        change = self.ledger.tick(now)
        for uid, node in list(self._lingering.items()) if change.freed else ():
            node_ledger = self.ledger.node(node)
            record = node_ledger.records.get(uid) if node_ledger is not None else None
            if record is None or record.life is not PodLife.LINGERING:
                del self._lingering[uid]
        return wakes + self.changed(change)

    def _node(self, node: Node) -> list[Wake]:
        name = node.metadata.name
        before, self._nodes[name] = self._nodes.get(name), nodesettings.essence(node)
        earlier, machine = self._machines.get(name), deletedreports.machine(node)
        self._machines[name] = machine
        if earlier is not None and earlier.uid != machine.uid:
            self._note_outlived(name, earlier)
        # Our agent writes the report again for the next Node of that name; other publishers may leave it as it is.
        if self._outlived.get(name, machine.uid) != machine.uid and name in self._reports:
            return [Wake(name, WakeCause.NODE), *self.drop_report(name)]
        if self._deleted.contradicted_by(name, machine):
            return [Wake(name, WakeCause.NODE), *self.drop_report(name)]
        facts = self.ledger.facts(name)
        # Heartbeats do not change what reports are interpreted with.
        if facts is not None and before != self._nodes[name]:
            self._note(self.ledger.report(self._read_again(facts, self._nodes[name]), again=True))
        return [Wake(name, WakeCause.NODE)]

    def _node_gone(self, name: str) -> None:
        self._nodes.pop(name, None)
        machine = self._machines.pop(name, None)
        if machine is not None:
            self._note_outlived(name, machine)
        if name in self._deleted:
            self.drop_report(name)

    def _note_outlived(self, name: str, machine: Machine) -> None:
        if self.ledger.facts(name) is not None:
            self._outlived[name] = machine.uid

    def _read_again(self, facts: RowFacts, node: Node) -> RowFacts:
        topology = self._reports.get(facts.node)
        if topology is None:
            return read.read_again(facts, node)
        found = self._reader.read(topology, node)
        return read.marked_deleted(found) if facts.node in self._deleted else found

    def _report(self, topology: NodeTopology) -> list[Wake]:
        self._outlived.pop(topology.node, None)
        self._note(self.ledger.report(self._read_report(topology)))
        return [Wake(topology.node, WakeCause.REPORT)]

    def _report_gone(self, name: str, now: float) -> list[Wake]:
        """A node does not lose its zones with its report: while the Node is there, the last report stays in force.

        The watches of Nodes and of reports are not in order: the next Node of that name may be there already."""
        facts, machine = self.ledger.facts(name), self._machines.get(name)
        if facts is None or machine is None or name in self._outlived or not self._deleted.keep(name, machine, now):
            return self.drop_report(name)
        self._note(self.ledger.report(read.marked_deleted(facts), again=True))
        return []

    def drop_report(self, name: str) -> list[Wake]:
        """The node's report is not in force any more."""
        self._deleted.forget(name)
        self._outlived.pop(name, None)
        self._reports.pop(name, None)
        self._reader.forget(name)
        change = self.ledger.report_gone(name)
        self._note(change)
        # Whether a node without a report takes the pod is for the profile to say.
        return [Wake(node, WakeCause.REPORT) for node in change.rows]

    def _report_again(self, name: str) -> list[Wake]:
        facts = self.ledger.facts(name)
        if facts is not None:
            self._note(self.ledger.report(facts))
        return [Wake(name, WakeCause.REPORT)]

    def _read_report(self, topology: NodeTopology) -> RowFacts:
        self._deleted.forget(topology.node)
        if read.is_plain(topology):
            self._reports.pop(topology.node, None)
        else:
            self._reports[topology.node] = topology
        return self._reader.read(topology, self._nodes.get(topology.node))

    # Rows

    def refresh(self) -> None:
        """Read every node that changed from the ledger."""
        while self._stale:
            name, _ = self._stale.popitem()
            number = self.columns.rows.get(name)
            if number is not None:
                self._read(name, number)

    def read_again(self) -> None:
        """Read every node again."""
        self._stale.update(dict.fromkeys(self.columns.rows))
        self.refresh()

    @property
    def outlived(self) -> dict[str, str]:
        """By node whose report is older than its Node: the uid of the Node that the report is about."""
        return dict(self._outlived)

    def adopt(self, node_ledgers: Sequence[NodeLedger], outlived: Mapping[str, str]) -> None:
        """Replaces the ledger by one of a dump. Its revisions are already applied, so rows are read as they are."""
        for node_ledger in node_ledgers:
            self.ledger.adopt(node_ledger)
        self._outlived = dict(outlived)
        self._stale.clear()
        for name, number in self.columns.rows.items():
            self._show(number, self.ledger.row(name))

    def row(self, number: int) -> Row:
        row = self.ledger.row(self.columns.names[number])
        assert row is not None, "rows of a kind have a report"
        return row

    def state(self, number: int) -> RowState:
        """The row for the row model; cached for rows that every shape evaluates with it."""
        known = self._states.get(number)
        if known is not None:
            return known
        row = self._loose.pop(number, None)
        state = rows.charged(row or self.row(number), self.columns.resources)
        if row is not None:
            self._states[number] = state
        return state

    def facts(self, number: int) -> RowFacts | None:
        """The facts of the node's report."""
        return self._described.get(number)

    def topology(self, node: str) -> NodeTopology | None:
        """The node's report, if our agent wrote it."""
        return self._reports.get(node)

    def _read(self, name: str, number: int) -> None:
        self._show(number, self._revised(name, number))

    def _show(self, number: int, row: Row | None) -> None:
        self._loose.pop(number, None)
        self._states.pop(number, None)
        self._alike.pop(number, None)
        if row is None:
            self._described.pop(number, None)
            self.columns.undescribe(number)
            return
        before = self._described.get(number)
        if before is not row.facts:
            self._described[number] = row.facts
            # A row that was given to another node is empty, whatever it held before.
            if before is None or self.columns.kind[number] < 0 or not _same_hardware(before, row.facts):
                self.columns.describe(number, row.facts)
        free = rows.free_state(row)
        if free.loose:
            self._loose[number] = row
        if row.pending:
            self._alike[number] = list(row.pending)
        self.columns.set_free(number, free)

    def _revised(self, name: str, number: int) -> Row | None:
        """The node's row. If something became free, pending pods may get other zones."""
        row = self.ledger.row(name)
        if row is None or not row.pending or not self._has_grown(number, row):
            return row
        revised = self._reviser(row)
        if revised:
            node_ledger = self.ledger.node(name)
            assert node_ledger is not None, "it has a row"
            first = node_ledger.records[revised[0].uid].pod
            self.ledger.predict(name, first, revised[0], revised[1:])
        return self.ledger.row(name)

    def _has_grown(self, number: int, row: Row) -> bool:
        """Whether more is free than when the row was last read."""
        if self._described.get(number) is None or self.columns.rules(number) != row.facts.rules:
            return True
        self.columns.ensure_columns(row.width)
        before = self.columns.settled[number, : len(row.facts.rules.zones), : row.width].ravel().tolist()
        return len(row.settled) > len(before) or any(map(gt, row.settled, before))

    # Decisions

    def predict(self, number: int, pod: Pod, holding: Holding, revised: Sequence[Holding] = ()) -> None:
        """Enters a decision of the row model; the row must be read again."""
        self._note(self.ledger.predict(self.columns.names[number], pod, holding, revised))

    def enter(self, decision: Decision, number: int, pending_shape: int) -> None:
        """Enters a decision that a template made and charged to the columns; `pending_shape`: the row's before it."""
        template, node, pod = decision.holder, decision.node, decision.pod
        if template is NOTHING:
            return  # a node without a report: the pod is entered when it is seen there
        assert isinstance(template, Template), "pods that are placed by numbers have one"
        assert pod is not None
        holding, revised = template.holding(pod), tuple[Holding, ...]()
        if not holding.entries:
            pass  # holds nothing, so its admission order does not matter
        elif pending_shape == NONE_PENDING:
            self._alike[number] = [holding]
        elif pending_shape == holding.shape:
            holding, revised = self._among_equals(number, holding)
        self.ledger.predict(node, pod, holding, revised)

    def _among_equals(self, number: int, holding: Holding) -> tuple[Holding, tuple[Holding, ...]]:
        """Marks pods of one shape that may get each other's zones."""
        alike = self._alike[number]
        revised: tuple[Holding, ...] = ()
        first = alike[0]
        if first.interchangeable or (first.containers is not holding.containers and _zones(first) != _zones(holding)):
            holding = structs.replace(holding, interchangeable=True)
            if not first.interchangeable:
                alike[:] = [structs.replace(each, interchangeable=True) for each in alike]
                revised = tuple(alike)
        alike.append(holding)
        return holding, revised


def _zones(holding: Holding) -> list[tuple[int, ...]]:
    return [each.possible for each in holding.containers]


def _same_hardware(before: RowFacts, after: RowFacts) -> bool:
    """Whether a report says nothing new except what is free."""
    if before.rules is not after.rules and before.rules != after.rules:
        return False
    return before.supplies.stock is after.supplies.stock or before.supplies.stock == after.supplies.stock
