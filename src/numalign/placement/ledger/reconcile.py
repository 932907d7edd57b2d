"""Reconciles a node's report with the pods that are known there.

`ledger` calls `take` for a new report, and `judge` again when a pod appears that the report may cover. `coverage` says
which pods a report covers; here that is entered: pods become observed, are corrected or forgotten. What contradicts a
prediction is returned.

Pods of one shape that are pending together may be interchangeable (`commit` marks them): what they hold in sum is
known, which of them holds which part is not. This holds until one of them ends or a report covers only some of them.
From then on each of the others may be in any of their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field, structs

from numalign.api.attributes.podplacements import PodPlacement
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.ledger import coverage, observed, payload, unexplained
from numalign.placement.ledger import podrecord as recording
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.divergences import Divergence, DivergenceKind
from numalign.placement.ledger.nodeledger import NodeLedger, UnknownPods
from numalign.placement.ledger.observed import Observation
from numalign.placement.ledger.podrecord import COVERED, LIVE, SURE, PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods


def widened(records: Iterable[PodRecord]) -> dict[str, Holding]:
    """By uid, for pods that are interchangeable: what each of them holds, wherever that may be."""
    by_shape: dict[int, list[Holding]] = {}
    for holding in [record.holding for record in records]:
        if holding is not None and holding.interchangeable:
            by_shape.setdefault(holding.shape, []).append(holding)
    return {holding.uid: holding for alike in by_shape.values() for holding in _widened(alike)}


def _widened(holdings: Sequence[Holding]) -> Sequence[Holding]:
    if all(each.entries == holdings[0].entries for each in holdings):
        return holdings
    zones: dict[int, int] = {}
    for entry in (entry for each in holdings for entry in each.entries):
        zones[entry.column] = zones.get(entry.column, 0) | entry.zones
    places: dict[str, set[int]] = {}
    for container in (container for each in holdings for container in each.containers):
        places.setdefault(container.container, set()).update(container.possible)
    return [
        structs.replace(
            each,
            entries=tuple(_over(entry, zones[entry.column]) for entry in each.entries),
            containers=tuple(
                ContainerZones(container.container, tuple(sorted(places[container.container])))
                for container in each.containers
            ),
        )
        for each in holdings
    ]


def _over(entry: Entry, zones: int) -> Entry:
    return structs.replace(entry, zones=zones) if entry.zones else entry


Placements = tuple[PodPlacement, ...]


class ReconcileResult(Struct):
    """What came out: predictions that were wrong, pods that are done with, entries that have no zone any more."""

    divergences: list[Divergence] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    vanished: int = 0
    has_strangers: bool = False
    """Whether the report may have pods that are not known here."""


class Deadlines(Struct, frozen=True):
    """When a report that does not account for a running pod says something about the pod."""

    report_count: int
    sure: int
    latest: int
    """The order of the youngest pod that the report has."""


def is_repeated(book: NodeLedger, facts: RowFacts) -> bool:
    """Whether a report says what the one before said, and no pod waits for a report."""
    return not book.unjudged and facts == book.facts and not any(map(_is_open, book.records.values()))


def take(book: NodeLedger, facts: RowFacts, unobserved: UnobservedPods, *, again: bool = False) -> ReconcileResult:
    """Enter a new report, or the same one read anew."""
    vanished = book.take(facts, again=again)
    findings = judge(book, facts, unobserved)
    findings.vanished = vanished
    return findings


def judge(book: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> ReconcileResult:
    """Enter which pods the report covers, with what it says of them, and what it has of others."""
    findings = _judged(book, facts, unobserved)
    if findings.has_strangers:
        _meet_strangers(book, facts, unobserved)
    elif book.unknown_pods.since:
        book.unknown_pods = UnknownPods()
    return findings


def _meet_strangers(book: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> None:
    records = list(book.records.values())
    if facts.placements is None:
        unobserved.ensure_all(records, book, facts)
    book.unknown_pods.note(unexplained.found(facts, records, unobserved.resources), book.report_count)


def _judged(book: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> ReconcileResult:
    if facts.placements is None and not facts.fingerprint and not any(map(_is_open, book.records.values())):
        book.judged(is_exact=False)
        return ReconcileResult(divergences=unexplained.unexplained(book, facts, unobserved, sure=False))
    records, placements = _to_be_judged(book, facts.placements)
    wide = widened(records)
    remains = book.remains if coverage.lists_finished_pods(facts) else {}
    node = coverage.NodeHistory(records, book.report_count, remains, book.matched, placements)
    judgement = coverage.judge(facts, node, unobserved.resources, lambda pods: unobserved.ensure_all(pods, book, facts))
    book.judged(is_exact=judgement.is_exact, matches=judgement.is_exact and bool(facts.fingerprint))
    is_known = judgement.is_exact or node.signs_known
    # Where the report names every pod, none is overdue.
    latest = _latest(book.records.values(), judgement) if len(judgement.listed) < len(records) else 0
    due = Deadlines(book.report_count, coverage.sure(facts) if is_known else SURE, latest)
    findings, entered = ReconcileResult(), False
    findings.has_strangers = _has_strangers(book, facts, len(judgement.listed) + len(book.records) - len(records))
    for record in records if facts.placements is not None else filter(_is_open, records):
        listed = judgement.listed.get(record.uid)
        cover = judgement.covers.get(record.uid) or (COVERED if record.life is LIVE else Cover.NO)
        if listed is not None and (listed != record.listed or record.holding is None):
            findings.divergences += _observe(record, listed, wide.get(record.uid), facts, unobserved)
        elif cover is not COVERED and _is_overdue(record, due):
            findings.divergences += _nothing_held(record, facts) if cover is Cover.NO else ()
            cover = COVERED
        elif cover is record.cover and not record.pod.spec.init_containers:
            continue
        _enter(book, record, cover, unobserved)
        entered = True
    if facts.payload is not None and _can_be_read(judgement) and (entered or facts.payload != book.payload):
        findings.divergences += _read_payload(book, facts, unobserved, wide)
    _part(book, wide, unobserved)
    findings.struck = [record.uid for record in records if record.life is not LIVE and _is_done_with(record, due)]
    for uid in findings.struck:
        book.strike(uid)
    if facts.placements is None:
        findings.divergences += unexplained.unexplained(book, facts, unobserved, sure=judgement.is_exact)
    return findings


def _to_be_judged(book: NodeLedger, placements: Placements | None) -> tuple[list[PodRecord], Sequence[PodPlacement]]:
    """All but those of which a report that names its pods says what the last one said, and what it says of them."""
    last, records, placements = book.named, book.records, placements or ()
    changed, gone = _differing(placements, last or ())
    # A name alone may be that of several pods, and then it takes all of them to judge.
    by_uid = bool(placements) and "" not in [each.uid for each in changed]
    book.name(placements if by_uid else None)
    if last is None or not by_uid:
        return list(records.values()), placements
    news = book.restless | {uid: records[uid] for each in changed + gone if (uid := each.uid) in records}
    listed = {each.uid: each for each in placements}
    return list(news.values()), [listed[uid] for uid in news if uid in listed]


def _differing(now: Placements, last: Placements) -> tuple[Placements, Placements]:
    """Both without what they begin and end with in common; what did not change is mostly the same object."""
    start, end, most = 0, 0, min(len(now), len(last))
    while start < most and now[start] is last[start]:
        start += 1
    while end < most - start and now[-1 - end] is last[-1 - end]:
        end += 1
    return now[start : len(now) - end], last[start : len(last) - end]


def _has_strangers(book: NodeLedger, facts: RowFacts, listed: int) -> bool:
    """`listed`: how many of the pods that we know the report names."""
    if facts.placements is not None:
        return listed < len(facts.placements)
    return bool(facts.fingerprint) and book.matched is None and book.report_count <= SURE


def _is_open(record: PodRecord) -> bool:
    """Whether a report that names no pods can change anything about it."""
    settled = record.cover is COVERED and record.life is LIVE
    return not settled or bool(record.pod.spec.init_containers)


def _is_done_with(record: PodRecord, due: Deadlines) -> bool:
    """A report that came in since it ended does not cover it. If none ever did, that one may be from before its time,
    and the next one still have it."""
    if record.life is not PodLife.ENDED or record.cover is not Cover.NO or due.report_count <= record.ended:
        return False
    return record.reported or record.end_order < due.latest or record.is_forgotten(due.report_count, due.sure)


def part(book: NodeLedger, unobserved: UnobservedPods) -> None:
    """Pods that may sit in each other's places do not stay together: each of them may have any of the places."""
    for uid, holding in widened(book.records.values()).items():
        _replace(book, book.records[uid], holding, unobserved)


def refresh(book: NodeLedger, record: PodRecord, unobserved: UnobservedPods) -> None:
    """Count a record whose pod or whose holding has changed."""
    facts = book.facts
    if facts is not None:
        if record.life is not LIVE or record.absent:
            unobserved.ensure(record, facts)
        record.hidden = unobserved.hidden(record, facts)
    book.put(record)


def _enter(book: NodeLedger, record: PodRecord, cover: Cover, unobserved: UnobservedPods) -> None:
    book.cover(record, cover)
    refresh(book, record, unobserved)


def _part(book: NodeLedger, wide: Mapping[str, Holding], unobserved: UnobservedPods) -> None:
    """Of pods that may sit in each other's places the report covers some, in places that it does not name."""
    if not wide:
        return
    covered = {holding.shape for uid, holding in wide.items() if book.records[uid].cover is Cover.YES}
    for uid, holding in wide.items():
        record = book.records[uid]
        if record.cover is not Cover.YES and holding.shape in covered:
            _replace(book, record, holding, unobserved)


def _replace(book: NodeLedger, record: PodRecord, holding: Holding, unobserved: UnobservedPods) -> None:
    if record.holding != holding:
        record.holding = holding
        refresh(book, record, unobserved)


def _observe(
    record: PodRecord, listed: PodPlacement, wide: Holding | None, facts: RowFacts, unobserved: UnobservedPods
) -> list[Divergence]:
    seen = observed.read(listed, facts, unobserved.resources, reuses=recording.has_init_steps(record.pod))
    record.listed = listed
    return _believe(record, seen, wide, facts, unobserved)


def _believe(
    record: PodRecord, seen: Observation, wide: Holding | None, facts: RowFacts, unobserved: UnobservedPods
) -> list[Divergence]:
    before = wide or record.holding
    wrong: list[Divergence] = []
    if before is not None and before.source is Source.PREDICTED:
        wrong = observed.contradictions(before, seen, facts, unobserved.resources)
    record.holding = Holding(
        uid=record.uid,
        name=record.name,
        source=Source.OBSERVED,
        entries=seen.entries,
        containers=_with_unseen(seen.containers, before.containers) if before else seen.containers,
        shape=before.shape if before else -1,
    )
    return wrong


def _with_unseen(seen: tuple[ContainerZones, ...], before: tuple[ContainerZones, ...]) -> tuple[ContainerZones, ...]:
    """Containers that a report does not name are where they were taken to be."""
    # Mostly all are seen where they were expected, and replicas have that in common.
    if seen == before:
        return before
    named = {each.container for each in seen}
    return (*seen, *[each for each in before if each.container not in named])


def _can_be_read(judgement: coverage.Coverage) -> bool:
    """Whether it is known for every pod if the report speaks of it."""
    return judgement.is_exact and Cover.DOUBT not in judgement.covers.values()


def _read_payload(
    book: NodeLedger, facts: RowFacts, unobserved: UnobservedPods, wide: Mapping[str, Holding]
) -> list[Divergence]:
    """What upstream's codec says of the pods that the report covers."""
    book.payload = facts.payload
    covered = [record for record in book.records.values() if record.cover is Cover.YES]
    found = payload.observed(facts.payload, covered, facts, unobserved) if facts.payload else {}
    wrong: list[Divergence] = []
    for uid, seen in found.items():
        record = book.records[uid]
        if record.holding is None or record.holding.entries != seen.entries or not _is_observed(record):
            wrong += _believe(record, seen, wide.get(uid), facts, unobserved)
            refresh(book, record, unobserved)
    return wrong


def _is_observed(record: PodRecord) -> bool:
    return record.holding is not None and record.holding.source is Source.OBSERVED


def _is_overdue(record: PodRecord, due: Deadlines) -> bool:
    """It runs for so long that the report knows it, if it holds anything. One that was listed before still holds it."""
    if record.life is not PodLife.LIVE or record.listed is not None or record.started is None:
        return False
    return record.start_order < due.latest or record.is_settled(due.report_count, due.sure)


def _latest(records: Iterable[PodRecord], judgement: coverage.Coverage) -> int:
    """The youngest decision of ours in a report that says exactly which pods it covers: pods that ran before that
    decision was there, too, when the node was looked at."""
    if not judgement.is_exact:
        return 0
    ours = [record for record in records if record.after >= 0 and record.life is LIVE]
    covered = [record.order for record in ours if judgement.covers.get(record.uid, record.cover) is COVERED]
    return max(covered, default=0)


def _nothing_held(record: PodRecord, facts: RowFacts) -> list[Divergence]:
    before = record.holding
    record.holding = Holding(
        uid=record.uid, name=record.name, source=Source.OBSERVED, shape=before.shape if before else -1
    )
    if before is None or before.source is not Source.PREDICTED or not any(entry.certain for entry in before.entries):
        return []
    return [Divergence(kind=DivergenceKind.NOTHING_HELD, node=facts.node, pod=record.name)]
