"""The ledger as plain data, and back: for dumps, and to repeat a decision elsewhere.

The scheduler's dump calls `dump`, and `adopt` puts a copy into another engine. A copy has what does not follow from
objects: which pod was predicted where, which report covers which pods, which pods are pending, and on which nodes a
placement failed. What follows from reports and pods is left out. Columns and shapes have other numbers in every
engine, so the copy says which resource and which pod each number stands for."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from msgspec import Struct, field, structs

from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.decode.structs import Wire
from numalign.api.objects.pod import Pod
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import Forecast
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.ledger import Revision
from numalign.placement.ledger.nodeledger import NodeLedger, UnknownPods
from numalign.placement.ledger.podrecord import EndedPodsDump, PodHistory, PodRecord
from numalign.placement.verdicts.verdicts import Trial, Verdicts

HISTORY: Final = PodHistory.__struct_fields__
Shown = Callable[[Pod], Pod]


class PodDump(PodHistory, kw_only=True):
    pod: Pod | None = None
    """The pod; None: it is a pod of the cluster, found by its uid."""
    is_listed: bool = False
    """Whether the node's report names it, or did before the node or its report went."""
    listed: PodPlacement | None = None
    """What that report said of it; None: the report that is there says it."""


class NodeDump(Wire, frozen=True):
    node: str
    report_count: int = 0
    is_exact: bool = False
    read_payload: bool = False
    records: tuple[PodDump, ...] = ()
    matched: int | None = None
    """The report count when a fingerprint was last that of known pods."""
    unknown_since: dict[str, int] = field(default_factory=dict)
    """By uid, pods that the report has and the ledger does not: the report count at which each was first found."""
    perhaps_free: tuple[Entry, ...] = ()
    """What these may have released by now."""
    unplaced: dict[str, Forecast | None] = field(default_factory=dict)
    """By uid, pods that the model places when the node has a report, with what their scheduler wrote on them."""
    slow: tuple[str, ...] = ()
    """Terminating pods, by uid, for whose end no other pod waits any longer."""
    zones: tuple[int, ...] = ()
    """The zones that the positions in holdings stand for; empty: those of the report that is there."""


class LedgerDump(Wire, frozen=True):
    nodes: tuple[NodeDump, ...] = ()
    resources: tuple[str, ...] = ()
    """Resource names by column number of the copy."""
    shapes: dict[int, Pod] = field(default_factory=dict)
    """One pod of each shape, by shape number of the copy."""
    revisions: tuple[Revision, ...] = ()
    """The latest revisions, in order."""
    trials: dict[int, dict[str, Trial]] = field(default_factory=dict)
    """By shape and node: failed placements on nodes that have not changed since."""
    outlived: dict[str, str] = field(default_factory=dict)
    """By node whose report is older than its Node: the uid of the Node that the report is about."""
    dropped: tuple[str, ...] = ()
    """Nodes whose report object is about an earlier Node, and not in force any more."""
    ended: EndedPodsDump | None = None
    """None: the copy is of a program that did not write it."""


NOTHING: Final = LedgerDump()


def dump(engine: Engine, shown: Shown = lambda pod: pod) -> LedgerDump:
    """A copy of the ledger; empty if the flavour has none. `shown`: removes what a dump must not contain of a pod."""
    return engine.flavour.either(lambda exact: _dump(engine, exact, shown), lambda _: NOTHING)


def _dump(engine: Engine, flavour: ExactFlavour, shown: Shown) -> LedgerDump:
    mirror = flavour.mirror
    mirror.refresh()
    ledger = mirror.ledger
    for node_ledger in ledger.nodes():
        ledger.row(node_ledger.node)
    trials = _trials(engine.columns, flavour.verdicts)
    used = sorted(number for number in (ledger.shapes() | trials.keys()) if number >= 0)
    return LedgerDump(
        nodes=tuple(_node_dump(node_ledger, shown) for node_ledger in ledger.nodes()),
        resources=tuple(engine.columns.resources.names),
        shapes={number: shown(engine.shapes.all[number].pod) for number in used},
        revisions=tuple(ledger.revisions),
        trials=trials,
        outlived=mirror.outlived,
        dropped=tuple(sorted(node for node in engine.reports if ledger.facts(node) is None)),
        ended=ledger.ended.dump(),
    )


def adopt(engine: Engine, copy: LedgerDump, pods: Mapping[str, Pod], without: Container[str] = ()) -> None:
    """Replaces the engine's ledger with the copy. The engine must have the same nodes, reports and pods already.

    `without`: pods that are restored as pending."""
    engine.flavour.either(lambda exact: _adopt(engine, exact, copy, pods, without), lambda _: None)


def _adopt(
    engine: Engine, flavour: ExactFlavour, copy: LedgerDump, pods: Mapping[str, Pod], without: Container[str]
) -> None:
    shapes = {number: engine.shape(pod).number for number, pod in copy.shapes.items()}
    restoring = _Restoring(copy.resources, engine.columns.resources, shapes, pods)
    mirror, before = flavour.mirror, _undone(copy.revisions, without)
    for node in copy.dropped:
        mirror.drop_report(node)
    known = {node_ledger.node: node_ledger for node_ledger in mirror.ledger.nodes()}
    mirror.adopt(
        [restoring.node_ledger(each, known.get(each.node) or NodeLedger(each.node), before) for each in copy.nodes],
        copy.outlived,
    )
    if copy.ended is not None:
        mirror.ledger.ended.adopt(copy.ended)
    for number, tried in copy.trials.items():
        table = flavour.verdicts.table(engine.shapes.all[shapes[number]])
        for node, (code, uid) in tried.items():
            if node in engine.columns.rows and uid not in without:
                table.turn_down(engine.columns.rows[node], code, uid)


def _undone(revisions: tuple[Revision, ...], without: Container[str]) -> dict[tuple[str, str], Holding]:
    """By node and uid, the holdings before these pods were placed."""
    before: dict[tuple[str, str], Holding] = {}
    for each in reversed(revisions):
        if each.uid in without:
            before |= {(each.node, holding.uid): holding for holding in each.before}
    return before


class _Restoring(Struct, frozen=True):
    """Converts the copy's column and shape numbers into the engine's."""

    names: tuple[str, ...]
    resources: Resources
    shapes: Mapping[int, int]
    """The engine's numbers by the copy's numbers."""
    pods: Mapping[str, Pod]

    def node_ledger(self, copy: NodeDump, known: NodeLedger, before: Mapping[tuple[str, str], Holding]) -> NodeLedger:
        """The ledger of a node. `known`: the engine's, with the report. What it reported since `before` is kept."""
        node_ledger = NodeLedger(copy.node)
        node_ledger.facts, node_ledger.zones, node_ledger.remains = known.facts, known.zones, known.remains
        if node_ledger.facts is None:
            node_ledger.zones = copy.zones
        node_ledger.report_count, node_ledger.is_exact = copy.report_count, copy.is_exact
        node_ledger.matched = copy.matched
        # A pod that the watch shows next ends the doubt about it only where the ledger knows that there is one.
        node_ledger.unknown_pods = UnknownPods(dict(copy.unknown_since), self._entries(copy.perhaps_free))
        if copy.read_payload and node_ledger.facts is not None:
            node_ledger.payload = node_ledger.facts.payload
        for each in copy.records:
            pod = each.pod or self.pods.get(each.uid)
            if pod is not None:
                record = self._record(each, pod, node_ledger.facts, before.get((copy.node, each.uid)))
                node_ledger.put(record)
                if pod.metadata.deletion_timestamp is not None and record.life is PodLife.LIVE:
                    node_ledger.terminating[each.uid] = each.uid not in copy.slow
        for uid, forecast in copy.unplaced.items():
            if uid in node_ledger.records:
                node_ledger.unplaced[uid] = node_ledger.records[uid]
                node_ledger.records[uid].forecast = forecast
        return node_ledger

    def _record(self, copy: PodDump, pod: Pod, facts: RowFacts | None, before: Holding | None) -> PodRecord:
        history = {name: getattr(copy, name) for name in HISTORY}
        is_seen = copy.holding is not None and copy.holding.source is Source.OBSERVED
        holding = copy.holding if before is None or is_seen else before
        history["holding"] = self._holding(holding) if holding is not None else None
        history["hidden"] = self._entries(copy.hidden)
        listed = copy.listed or (_listed(copy.uid, pod, facts) if copy.is_listed else None)
        return PodRecord(**history, name=pod.metadata.full_name, pod=pod, listed=listed)

    def _holding(self, holding: Holding) -> Holding:
        shape = self.shapes.get(holding.shape, -1)
        return structs.replace(holding, entries=self._entries(holding.entries), shape=shape)

    def _entries(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(structs.replace(each, column=self.resources.column(self.names[each.column])) for each in entries)


def _listed(uid: str, pod: Pod, facts: RowFacts | None) -> PodPlacement | None:
    placements = (facts.placements if facts is not None else None) or ()
    meta = pod.metadata
    named = (
        each for each in placements if each.uid == uid or (each.namespace, each.name) == (meta.namespace, meta.name)
    )
    return next(named, None)


def _trials(columns: Columns, verdicts: Verdicts) -> dict[int, dict[str, Trial]]:
    found: dict[int, dict[str, Trial]] = {}
    for table in filter(lambda each: each.tried, verdicts.all()):
        verdicts.refresh(table)
        held = {columns.names[row]: trial for row, trial in table.tried.items() if table.codes[row] == trial[0]}
        if held:
            found[table.shape.number] = held
    return found


def _node_dump(node_ledger: NodeLedger, shown: Shown) -> NodeDump:
    return NodeDump(
        node=node_ledger.node,
        report_count=node_ledger.report_count,
        is_exact=node_ledger.is_exact,
        read_payload=node_ledger.payload is not None,
        records=tuple(_record(record, node_ledger.facts, shown) for record in node_ledger.records.values()),
        matched=node_ledger.matched,
        unknown_since=dict(node_ledger.unknown_pods.since),
        perhaps_free=node_ledger.unknown_pods.perhaps_free,
        unplaced={uid: record.forecast for uid, record in node_ledger.unplaced.items()},
        slow=tuple(uid for uid, is_awaited in node_ledger.terminating.items() if not is_awaited),
        zones=node_ledger.zones if node_ledger.facts is None else (),
    )


def _record(record: PodRecord, facts: RowFacts | None, shown: Shown) -> PodDump:
    return PodDump(
        **{name: getattr(record, name) for name in HISTORY},
        # A running pod is among the cluster's pods; an ended one may exist only in the copy.
        pod=None if record.life is PodLife.LIVE else shown(record.pod),
        is_listed=record.listed is not None,
        listed=None if facts is not None and facts.placements is not None else record.listed,
    )
