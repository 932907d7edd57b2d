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
from numalign.placement.ledger import coverage, observed, payload, podrecord, unexplained
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.divergences import Divergence, DivergenceKind
from numalign.placement.ledger.nodeledger import NodeLedger, UnknownPods
from numalign.placement.ledger.observed import Observation
from numalign.placement.ledger.podrecord import COVERED, LIVE, SURE, PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods


def widened(records: Iterable[PodRecord]) -> dict[str, Holding]:
    """By uid, for interchangeable pods: holdings that cover the zones of all of them."""
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
    """Wrong predictions, pods whose records can be dropped, and the number of entries without a zone."""

    divergences: list[Divergence] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    vanished: int = 0
    has_strangers: bool = False
    """Whether the report may cover pods that the ledger does not have."""


class Deadlines(Struct, frozen=True):
    """After how many reports a report without a running pod proves something about the pod."""

    report_count: int
    sure: int
    latest: int
    """The order of the youngest pod that the report covers."""


def is_repeated(node_ledger: NodeLedger, facts: RowFacts) -> bool:
    """Whether a report equals the one before and no pod waits for a report."""
    return (
        not node_ledger.unjudged and facts == node_ledger.facts and not any(map(_is_open, node_ledger.records.values()))
    )


def take(
    node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods, *, again: bool = False
) -> ReconcileResult:
    """Enters a new report, or the same one with a new interpretation."""
    vanished = node_ledger.take(facts, again=again)
    findings = judge(node_ledger, facts, unobserved)
    findings.vanished = vanished
    return findings


def judge(node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> ReconcileResult:
    """Enters which pods the report covers, with their placements, and what it has of unknown pods."""
    findings = _judged(node_ledger, facts, unobserved)
    if findings.has_strangers:
        _meet_strangers(node_ledger, facts, unobserved)
    elif node_ledger.unknown_pods.since:
        node_ledger.unknown_pods = UnknownPods()
    return findings


def _meet_strangers(node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> None:
    records = list(node_ledger.records.values())
    if facts.placements is None:
        unobserved.ensure_all(records, node_ledger, facts)
    node_ledger.unknown_pods.note(unexplained.found(facts, records, unobserved.resources), node_ledger.report_count)


def _judged(node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods) -> ReconcileResult:
    if facts.placements is None and not facts.fingerprint and not any(map(_is_open, node_ledger.records.values())):
        node_ledger.judged(is_exact=False)
        return ReconcileResult(divergences=unexplained.unexplained(node_ledger, facts, unobserved, sure=False))
    records, placements = _to_be_judged(node_ledger, facts.placements)
    wide = widened(records)
    remains = node_ledger.remains if coverage.lists_finished_pods(facts) else {}
    node = coverage.NodeHistory(records, node_ledger.report_count, remains, node_ledger.matched, placements)
    judgement = coverage.judge(
        facts, node, unobserved.resources, lambda pods: unobserved.ensure_all(pods, node_ledger, facts)
    )
    node_ledger.judged(is_exact=judgement.is_exact, matches=judgement.is_exact and bool(facts.fingerprint))
    is_known = judgement.is_exact or node.signs_known
    # Where the report names every pod, none is overdue.
    latest = _latest(node_ledger.records.values(), judgement) if len(judgement.listed) < len(records) else 0
    due = Deadlines(node_ledger.report_count, coverage.sure(facts) if is_known else SURE, latest)
    findings, entered = ReconcileResult(), False
    findings.has_strangers = _has_strangers(
        node_ledger, facts, len(judgement.listed) + len(node_ledger.records) - len(records)
    )
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
        _enter(node_ledger, record, cover, unobserved)
        entered = True
    if facts.payload is not None and _can_be_read(judgement) and (entered or facts.payload != node_ledger.payload):
        findings.divergences += _read_payload(node_ledger, facts, unobserved, wide)
    _part(node_ledger, wide, unobserved)
    findings.struck = [record.uid for record in records if record.life is not LIVE and _is_done_with(record, due)]
    for uid in findings.struck:
        node_ledger.strike(uid)
    if facts.placements is None:
        findings.divergences += unexplained.unexplained(node_ledger, facts, unobserved, sure=judgement.is_exact)
    return findings


def _to_be_judged(
    node_ledger: NodeLedger, placements: Placements | None
) -> tuple[list[PodRecord], Sequence[PodPlacement]]:
    """The pods to judge: all but those whose placement in a report that names its pods did not change."""
    last, records, placements = node_ledger.named, node_ledger.records, placements or ()
    changed, gone = _differing(placements, last or ())
    # Several pods may share a name, and then all of them must be judged.
    by_uid = bool(placements) and "" not in [each.uid for each in changed]
    node_ledger.name(placements if by_uid else None)
    if last is None or not by_uid:
        return list(records.values()), placements
    news = node_ledger.restless | {uid: records[uid] for each in changed + gone if (uid := each.uid) in records}
    listed = {each.uid: each for each in placements}
    return list(news.values()), [listed[uid] for uid in news if uid in listed]


def _differing(now: Placements, last: Placements) -> tuple[Placements, Placements]:
    """Both without their common beginning and end. What did not change is usually the same object."""
    start, end, most = 0, 0, min(len(now), len(last))
    while start < most and now[start] is last[start]:
        start += 1
    while end < most - start and now[-1 - end] is last[-1 - end]:
        end += 1
    return now[start : len(now) - end], last[start : len(last) - end]


def _has_strangers(node_ledger: NodeLedger, facts: RowFacts, listed: int) -> bool:
    """Whether the report has pods that the ledger does not. `listed`: the number of known pods that it names."""
    if facts.placements is not None:
        return listed < len(facts.placements)
    return bool(facts.fingerprint) and node_ledger.matched is None and node_ledger.report_count <= SURE


def _is_open(record: PodRecord) -> bool:
    """Whether a report that names no pods can change the record."""
    settled = record.cover is COVERED and record.life is LIVE
    return not settled or bool(record.pod.spec.init_containers)


def _is_done_with(record: PodRecord, due: Deadlines) -> bool:
    """Whether an ended pod's record can be dropped: a later report does not cover the pod.

    If no report ever covered it, that report may be older than the pod, and the next one may still cover it."""
    if record.life is not PodLife.ENDED or record.cover is not Cover.NO or due.report_count <= record.ended:
        return False
    return record.reported or record.end_order < due.latest or record.is_forgotten(due.report_count, due.sure)


def part(node_ledger: NodeLedger, unobserved: UnobservedPods) -> None:
    """Ends the interchange of pods: from now on each of them may have the zones of any of them."""
    for uid, holding in widened(node_ledger.records.values()).items():
        _replace(node_ledger, node_ledger.records[uid], holding, unobserved)


def refresh(node_ledger: NodeLedger, record: PodRecord, unobserved: UnobservedPods) -> None:
    """Updates the sums after the pod or the holding of a record changed."""
    facts = node_ledger.facts
    if facts is not None:
        if record.life is not LIVE or record.absent:
            unobserved.ensure(record, facts)
        record.hidden = unobserved.hidden(record, facts)
    node_ledger.put(record)


def _enter(node_ledger: NodeLedger, record: PodRecord, cover: Cover, unobserved: UnobservedPods) -> None:
    node_ledger.cover(record, cover)
    refresh(node_ledger, record, unobserved)


def _part(node_ledger: NodeLedger, wide: Mapping[str, Holding], unobserved: UnobservedPods) -> None:
    """Handles a report that covers only some of the interchangeable pods, without naming their zones."""
    if not wide:
        return
    covered = {holding.shape for uid, holding in wide.items() if node_ledger.records[uid].cover is Cover.YES}
    for uid, holding in wide.items():
        record = node_ledger.records[uid]
        if record.cover is not Cover.YES and holding.shape in covered:
            _replace(node_ledger, record, holding, unobserved)


def _replace(node_ledger: NodeLedger, record: PodRecord, holding: Holding, unobserved: UnobservedPods) -> None:
    if record.holding != holding:
        record.holding = holding
        refresh(node_ledger, record, unobserved)


def _observe(
    record: PodRecord, listed: PodPlacement, wide: Holding | None, facts: RowFacts, unobserved: UnobservedPods
) -> list[Divergence]:
    seen = observed.read(listed, facts, unobserved.resources, reuses=podrecord.has_init_steps(record.pod))
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
    """The observation, with the predicted zones of containers that the report does not name."""
    # Usually all are observed in their predicted zones, and replicas share the object.
    if seen == before:
        return before
    named = {each.container for each in seen}
    return (*seen, *[each for each in before if each.container not in named])


def _can_be_read(judgement: coverage.Coverage) -> bool:
    """Whether it is known for every pod if the report covers it."""
    return judgement.is_exact and Cover.DOUBT not in judgement.covers.values()


def _read_payload(
    node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods, wide: Mapping[str, Holding]
) -> list[Divergence]:
    """The observations of upstream's codec for the pods that the report covers."""
    node_ledger.payload = facts.payload
    covered = [record for record in node_ledger.records.values() if record.cover is Cover.YES]
    found = payload.observed(facts.payload, covered, facts, unobserved) if facts.payload else {}
    wrong: list[Divergence] = []
    for uid, seen in found.items():
        record = node_ledger.records[uid]
        if record.holding is None or record.holding.entries != seen.entries or not _is_observed(record):
            wrong += _believe(record, seen, wide.get(uid), facts, unobserved)
            refresh(node_ledger, record, unobserved)
    return wrong


def _is_observed(record: PodRecord) -> bool:
    return record.holding is not None and record.holding.source is Source.OBSERVED


def _is_overdue(record: PodRecord, due: Deadlines) -> bool:
    """Whether the pod has been running for so long that the report must name it, and was never listed before."""
    if record.life is not PodLife.LIVE or record.listed is not None or record.started is None:
        return False
    return record.start_order < due.latest or record.is_settled(due.report_count, due.sure)


def _latest(records: Iterable[PodRecord], judgement: coverage.Coverage) -> int:
    """The youngest decision of this scheduler in a report whose set of pods is known exactly.

    Pods that were running before that decision were on the node, too, when the publisher read it."""
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
