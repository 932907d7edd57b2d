"""The ledger as plain data, and back: for dumps, and to repeat a decision elsewhere.

The scheduler's dump calls `copied`, and `adopt` puts a copy into another engine. A copy has what only history tells:
which pod was predicted where, which report covers which pods, which pods are pending, which nodes were tried in vain.
What follows from reports and pods is left out. Columns and shapes have other numbers in every engine, so the copy says
which resource and which pod each number stands for."""

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
from numalign.placement.ledger.charges import PodLife
from numalign.placement.ledger.ledger import Revision
from numalign.placement.ledger.nodeledger import NodeLedger
from numalign.placement.ledger.podrecord import PodHistory, PodRecord
from numalign.placement.verdicts.verdicts import Trial, Verdicts

HISTORY: Final = PodHistory.__struct_fields__
Shown = Callable[[Pod], Pod]


class PodDump(PodHistory, kw_only=True):
    pod: Pod | None = None
    """None: a pod of the cluster, known by its uid."""
    is_listed: bool = False
    """Whether the node's report names it."""


class NodeDump(Wire, frozen=True):
    node: str
    report_count: int = 0
    is_exact: bool = False
    read_payload: bool = False
    records: tuple[PodDump, ...] = ()
    perhaps_free: tuple[Entry, ...] = ()


class LedgerDump(Wire, frozen=True):
    books: tuple[NodeDump, ...] = ()
    resources: tuple[str, ...] = ()
    """By the columns in here."""
    shapes: dict[int, Pod] = field(default_factory=dict)
    """By the numbers in here, a pod of each shape."""
    revisions: tuple[Revision, ...] = ()
    """The latest ones, in their order."""
    trials: dict[int, dict[str, Trial]] = field(default_factory=dict)
    """By shape and node: what was tried in vain there, where the node has not changed since."""


NOTHING: Final = LedgerDump()


def dump(engine: Engine, shown: Shown = lambda pod: pod) -> LedgerDump:
    """All of it as it stands; nothing for a flavour that has no ledger. `shown`: what a dump may have of a pod."""
    return engine.flavour.either(lambda exact: _dump(engine, exact, shown), lambda _: NOTHING)


def _dump(engine: Engine, flavour: ExactFlavour, shown: Shown) -> LedgerDump:
    mirror = flavour.mirror
    mirror.refresh()
    ledger = mirror.ledger
    for book in ledger.nodes():
        ledger.row(book.node)
    trials = _trials(engine.columns, flavour.verdicts)
    used = sorted(number for number in (ledger.shapes() | trials.keys()) if number >= 0)
    return LedgerDump(
        books=tuple(_book(book, shown) for book in ledger.nodes()),
        resources=tuple(engine.columns.resources.names),
        shapes={number: shown(engine.shapes.all[number].pod) for number in used},
        revisions=tuple(ledger.revisions),
        trials=trials,
    )


def adopt(engine: Engine, copy: LedgerDump, pods: Mapping[str, Pod], without: Container[str] = ()) -> None:
    """Put these books in place of the engine's own. It has to know the same nodes, reports and pods already.

    `without`: pods that are taken not to have been tried yet."""
    engine.flavour.either(lambda exact: _adopt(engine, exact, copy, pods, without), lambda _: None)


def _adopt(
    engine: Engine, flavour: ExactFlavour, copy: LedgerDump, pods: Mapping[str, Pod], without: Container[str]
) -> None:
    shapes = {number: engine.shape(pod).number for number, pod in copy.shapes.items()}
    restoring = _Restoring(copy.resources, engine.columns.resources, shapes, pods)
    mirror, before = flavour.mirror, _undone(copy.revisions, without)
    known = {book.node: book for book in mirror.ledger.nodes()}
    mirror.adopt([restoring.book(each, known.get(each.node) or NodeLedger(each.node), before) for each in copy.books])
    for number, tried in copy.trials.items():
        table = flavour.verdicts.table(engine.shapes.all[shapes[number]])
        for node, (code, uid) in tried.items():
            if node in engine.columns.rows and uid not in without:
                table.turn_down(engine.columns.rows[node], code, uid)


def _undone(revisions: tuple[Revision, ...], without: Container[str]) -> dict[tuple[str, str], Holding]:
    """By node and uid, what was believed before these pods were placed."""
    before: dict[tuple[str, str], Holding] = {}
    for each in reversed(revisions):
        if each.uid in without:
            before |= {(each.node, holding.uid): holding for holding in each.before}
    return before


class _Restoring(Struct, frozen=True):
    """Puts copies into an engine's own numbers."""

    names: tuple[str, ...]
    resources: Resources
    shapes: Mapping[int, int]
    """Numbers here, by numbers there."""
    pods: Mapping[str, Pod]

    def book(self, copy: NodeDump, known: NodeLedger, before: Mapping[tuple[str, str], Holding]) -> NodeLedger:
        """`known`: the engine's own, with the report. What the node has said since `before` stays known."""
        book = NodeLedger(copy.node)
        book.facts, book.zones, book.remains = known.facts, known.zones, known.remains
        book.report_count, book.is_exact = copy.report_count, copy.is_exact
        book.unknown_pods.perhaps_free = self._entries(copy.perhaps_free)
        if copy.read_payload and book.facts is not None:
            book.payload = book.facts.payload
        for each in copy.records:
            pod = each.pod or self.pods.get(each.uid)
            if pod is not None:
                book.put(self._record(each, pod, book.facts, before.get((copy.node, each.uid))))
        return book

    def _record(self, copy: PodDump, pod: Pod, facts: RowFacts | None, before: Holding | None) -> PodRecord:
        history = {name: getattr(copy, name) for name in HISTORY}
        is_seen = copy.holding is not None and copy.holding.source is Source.OBSERVED
        holding = copy.holding if before is None or is_seen else before
        history["holding"] = self._holding(holding) if holding is not None else None
        history["hidden"] = self._entries(copy.hidden)
        listed = _listed(copy.uid, pod, facts) if copy.is_listed else None
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


def _book(book: NodeLedger, shown: Shown) -> NodeDump:
    return NodeDump(
        node=book.node,
        report_count=book.report_count,
        is_exact=book.is_exact,
        read_payload=book.payload is not None,
        records=tuple(_record(record, shown) for record in book.records.values()),
        perhaps_free=book.unknown_pods.perhaps_free,
    )


def _record(record: PodRecord, shown: Shown) -> PodDump:
    return PodDump(
        **{name: getattr(record, name) for name in HISTORY},
        # A pod that lives is among the cluster's pods; others may be known nowhere else.
        pod=None if record.life is PodLife.LIVE else shown(record.pod),
        is_listed=record.listed is not None,
    )
