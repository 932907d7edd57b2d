"""The ledger's books as plain data, and back: for dumps, and for whoever repeats a decision elsewhere.

`copied` is asked by the scheduler's dump, `adopt` by whoever restores one. What follows from reports and pods is left
out and found again there; what only history tells is kept: who was predicted where, which report covers whom, whose
turn is open, what was tried in vain. Resources are named and shapes are shown by a pod of theirs, because their numbers
differ from engine to engine."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field, structs

from numalign.api.pod import Pod
from numalign.api.podplacements import PodPlacement
from numalign.api.wire import Wire
from numalign.placement.books import Book
from numalign.placement.columns import Columns
from numalign.placement.engine import Engine
from numalign.placement.entries import ContainerZones, Entry, Holding, Source
from numalign.placement.exactflavour import ExactFlavour
from numalign.placement.ledger import Revision
from numalign.placement.records import Record
from numalign.placement.resources import Resources
from numalign.placement.rowfacts import RowFacts
from numalign.placement.shares import Cover, Life
from numalign.placement.verdicts import Trial, Verdicts


class EntryCopy(Wire, frozen=True):
    resource: str
    amount: int
    zones: int
    certain: bool = True
    span: int = 0


class ContainerCopy(Wire, frozen=True):
    name: str
    possible: tuple[int, ...] = ()


class HoldingCopy(Wire, frozen=True):
    source: Source
    entries: tuple[EntryCopy, ...] = ()
    containers: tuple[ContainerCopy, ...] = ()
    shape: int = -1
    interchangeable: bool = False
    unsteady: bool = False
    promised: bool = False


class RecordCopy(Wire, frozen=True):
    uid: str
    order: int
    pod: Pod | None = None
    """None: the pod is known by its uid."""
    holding: HoldingCopy | None = None
    hidden: tuple[EntryCopy, ...] = ()
    bound: bool = False
    after: int = -1
    life: Life = Life.LIVE
    cover: Cover = Cover.NO
    found: bool = False
    started: int | None = None
    ended: int = 0
    end_order: int = 0
    until: float = 0.0
    is_listed: bool = False


class BookCopy(Wire, frozen=True):
    node: str
    looks: int = 0
    is_exact: bool = False
    read_payload: bool = False
    records: tuple[RecordCopy, ...] = ()
    perhaps_free: tuple[EntryCopy, ...] = ()


class RevisionCopy(Wire, frozen=True):
    """What was believed of pods on the node before one more was placed there."""

    uid: str
    node: str
    before: dict[str, HoldingCopy]
    """By uid."""


class LedgerCopy(Wire, frozen=True):
    books: tuple[BookCopy, ...] = ()
    shapes: dict[int, Pod] = field(default_factory=dict)
    """By the numbers in here, a pod of each shape."""
    revisions: tuple[RevisionCopy, ...] = ()
    """The latest ones, in their order."""
    trials: dict[int, dict[str, Trial]] = field(default_factory=dict)
    """By shape and node: what was tried in vain there, where the node has not changed since."""


NOTHING: Final = LedgerCopy()


def copied(engine: Engine) -> LedgerCopy:
    """All of it as it stands; nothing for a flavour that keeps no books."""
    if not isinstance(engine.flavour, ExactFlavour):
        return NOTHING
    mirror, names = engine.flavour.mirror, engine.columns.resources.names
    mirror.refresh()
    ledger = mirror.ledger
    for book in ledger.books():
        ledger.row(book.node)
    books = tuple(_book(book, names) for book in ledger.books())
    revisions = tuple(_revision(each, names) for each in ledger.revisions)
    trials = _trials(engine.columns, engine.flavour.verdicts)
    used = {*_shapes(books), *_held_shapes(revisions), *trials}
    shapes = {number: engine.shapes.all[number].pod for number in sorted(used) if number >= 0}
    return LedgerCopy(books, shapes, revisions, trials)


def adopt(engine: Engine, copy: LedgerCopy, pods: Mapping[str, Pod], without: Container[str] = ()) -> None:
    """Put these books in place of the engine's own. It has to know the same nodes, reports and pods already.

    `without`: pods that are taken not to have been tried yet."""
    if not isinstance(engine.flavour, ExactFlavour):
        return
    shapes = {number: engine.shape(pod).number for number, pod in copy.shapes.items()}
    how = _Restoring(engine.columns.resources, shapes, pods)
    mirror = engine.flavour.mirror
    known = {book.node: book for book in mirror.ledger.books()}
    books = _undone(copy, without)
    mirror.adopt([_restored(each, known.get(each.node) or Book(each.node), how) for each in books])
    for number, tried in copy.trials.items():
        table = engine.flavour.verdicts.table(engine.shapes.all[shapes[number]])
        for node, (code, uid) in tried.items():
            if node in engine.columns.rows and uid not in without:
                table.turn_down(engine.columns.rows[node], code, uid)


def _undone(copy: LedgerCopy, without: Container[str]) -> Iterator[BookCopy]:
    """Books as if these pods had not been placed; what nodes have said since then stays known."""
    before: dict[tuple[str, str], HoldingCopy] = {}
    for each in reversed(copy.revisions):
        if each.uid in without:
            before |= {(each.node, uid): holding for uid, holding in each.before.items()}
    for book in copy.books:
        records = tuple(_believed(record, before.get((book.node, record.uid))) for record in book.records)
        yield structs.replace(book, records=records)


def _believed(record: RecordCopy, before: HoldingCopy | None) -> RecordCopy:
    is_seen = record.holding is not None and record.holding.source is Source.OBSERVED
    return record if before is None or is_seen else structs.replace(record, holding=before)


class _Restoring(Struct, frozen=True):
    resources: Resources
    shapes: Mapping[int, int]
    """Numbers here, by numbers there."""
    pods: Mapping[str, Pod]

    def entries(self, copies: Sequence[EntryCopy]) -> tuple[Entry, ...]:
        column = self.resources.column
        return tuple(Entry(column(each.resource), each.amount, each.zones, each.certain, each.span) for each in copies)


def _restored(copy: BookCopy, before: Book, how: _Restoring) -> Book:
    book = Book(copy.node)
    book.facts, book.zones, book.remains = before.facts, before.zones, before.remains
    book.looks, book.is_exact, book.perhaps_free = copy.looks, copy.is_exact, how.entries(copy.perhaps_free)
    if copy.read_payload and book.facts is not None:
        book.payload = book.facts.payload
    for each in copy.records:
        pod = each.pod or how.pods.get(each.uid)
        if pod is not None:
            book.put(_record(each, pod, book.facts, how))
    return book


def _record(copy: RecordCopy, pod: Pod, facts: RowFacts | None, how: _Restoring) -> Record:
    return Record(
        uid=copy.uid,
        name=pod.metadata.full_name,
        order=copy.order,
        pod=pod,
        bound=copy.bound,
        after=copy.after,
        holding=_holding(copy, pod, how),
        hidden=how.entries(copy.hidden),
        life=copy.life,
        cover=copy.cover,
        found=copy.found,
        started=copy.started,
        ended=copy.ended,
        end_order=copy.end_order,
        until=copy.until,
        listed=_listed(copy.uid, pod, facts) if copy.is_listed else None,
    )


def _holding(copy: RecordCopy, pod: Pod, how: _Restoring) -> Holding | None:
    held = copy.holding
    if held is None:
        return None
    return Holding(
        uid=copy.uid,
        name=pod.metadata.full_name,
        source=held.source,
        entries=how.entries(held.entries),
        containers=tuple(ContainerZones(each.name, each.possible) for each in held.containers),
        shape=how.shapes.get(held.shape, -1),
        interchangeable=held.interchangeable,
        unsteady=held.unsteady,
        promised=held.promised,
    )


def _listed(uid: str, pod: Pod, facts: RowFacts | None) -> PodPlacement | None:
    placements = (facts.placements if facts is not None else None) or ()
    meta = pod.metadata
    named = (
        each for each in placements if each.uid == uid or (each.namespace, each.name) == (meta.namespace, meta.name)
    )
    return next(named, None)


def _shapes(books: Iterable[BookCopy]) -> Iterator[int]:
    return (record.holding.shape for book in books for record in book.records if record.holding is not None)


def _held_shapes(revisions: Iterable[RevisionCopy]) -> Iterator[int]:
    return (holding.shape for each in revisions for holding in each.before.values())


def _trials(columns: Columns, verdicts: Verdicts) -> dict[int, dict[str, Trial]]:
    found: dict[int, dict[str, Trial]] = {}
    for table in filter(lambda each: each.tried, verdicts.all()):
        verdicts.refresh(table)
        held = {columns.names[row]: trial for row, trial in table.tried.items() if table.codes[row] == trial[0]}
        if held:
            found[table.shape.number] = held
    return found


def _revision(revision: Revision, names: Sequence[str]) -> RevisionCopy:
    before = {holding.uid: _held(holding, names) for holding in revision.before}
    return RevisionCopy(revision.uid, revision.node, before)


def _book(book: Book, names: Sequence[str]) -> BookCopy:
    return BookCopy(
        node=book.node,
        looks=book.looks,
        is_exact=book.is_exact,
        read_payload=book.payload is not None,
        records=tuple(_copied(record, names) for record in book.records.values()),
        perhaps_free=_named(book.perhaps_free, names),
    )


def _copied(record: Record, names: Sequence[str]) -> RecordCopy:
    return RecordCopy(
        uid=record.uid,
        order=record.order,
        # Whoever is live is among the cluster's pods; of others nobody else may know.
        pod=None if record.life is Life.LIVE else record.pod,
        holding=_held(record.holding, names) if record.holding is not None else None,
        hidden=_named(record.hidden, names),
        bound=record.bound,
        after=record.after,
        life=record.life,
        cover=record.cover,
        found=record.found,
        started=record.started,
        ended=record.ended,
        end_order=record.end_order,
        until=record.until,
        is_listed=record.listed is not None,
    )


def _held(holding: Holding, names: Sequence[str]) -> HoldingCopy:
    return HoldingCopy(
        source=holding.source,
        entries=_named(holding.entries, names),
        containers=tuple(ContainerCopy(each.container, each.possible) for each in holding.containers),
        shape=holding.shape,
        interchangeable=holding.interchangeable,
        unsteady=holding.unsteady,
        promised=holding.promised,
    )


def _named(entries: Iterable[Entry], names: Sequence[str]) -> tuple[EntryCopy, ...]:
    return tuple(EntryCopy(names[each.column], each.amount, each.zones, each.certain, each.span) for each in entries)
