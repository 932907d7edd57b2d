"""Which pods a report's amounts account for.

The ledger asks whenever a report came in, or a pod that an earlier report may know. There are three kinds of evidence:

* the report names its pods (our agent): exactly these;
* it carries a fingerprint: the set of known pods that has it. Pods are admitted roughly as they are bound and leave in
  the order in which they end, so the sets tried are all settled pods, the first few of those that arrived and the last
  few of those that left. A name that two of these pods share proves nothing for either;
* neither: age and amounts. A publisher reads the node for report k+1 after it has published report k. A pod that was
  seen to run before report k came in was admitted before that, so report k+1 covers it; a pod that ended before report
  k came in is not in report k+1. (This takes for granted that one watch does not lag behind another by more than a
  publisher's period; a report that says the same again is not counted.) Younger ones are weighed: settled pods are in
  the report, so one whose amounts do not fit beside theirs is not, and if all of them fit, all of them are in it. After
  a fingerprint that belongs to other pods, amounts prove something only at a start, for pods that ran already.

Names and fingerprints outweigh age: a publisher may look again while its reports are still on their way, and then age
proves nothing. A pod that runs and that a report does not account for stays uncovered, until a pod that came later is
in a report, or for many more reports. A fingerprint that belongs to other pods makes age wait as long, if those before
it were of pods that we know. A publisher whose fingerprints never are counts pods that we do not see: there, age it is.

What remains is in doubt, and both ends of the doubt are charged (`charges`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Final

from msgspec import Struct, field

from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.nrt import fingerprint
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import podrecord
from numalign.placement.ledger.charges import Cover, PodLife
from numalign.placement.ledger.podrecord import COVERED, LIVE, PATIENT, STUBBORN, SURE, PodRecord

LISTS_ACTIVE_PODS: Final = (1, 34)
MOST_TRIES: Final = 200
"""Sets of pods tried against one fingerprint: about half a millisecond for a full node."""


class NodeHistory(Struct, frozen=True):
    """The state of a node when a report is judged."""

    records: Sequence[PodRecord]
    report_count: int
    remains: Mapping[str, int]
    """Hashes of finished pods that may be listed, by uid."""
    matched: int | None = None
    """Report count when a fingerprint was last that of known pods."""
    placements: Sequence[PodPlacement] = ()
    """The placements in a report that names its pods."""

    @property
    def signs_known(self) -> bool:
        """Whether a fingerprint of this node has matched known pods within the last `PATIENT` reports."""
        return self.matched is not None and self.report_count < self.matched + PATIENT


class PodSet(Struct, frozen=True):
    """A node's pods, sorted by whether a report may cover them."""

    settled: tuple[PodRecord, ...]
    """Pods that the report certainly covers."""
    pending: tuple[PodRecord, ...]
    """Pods that may be covered: running ones first, then in the order of binding."""
    leaving: tuple[PodRecord, ...]
    """Ended pods in the order of their end, without those that the report certainly does not cover."""
    remains: tuple[int, ...] = ()
    """Hashes of other pods that are finished and listed all the same."""


class Coverage(Struct, frozen=True):
    """Which pods a report covers, by uid. `covers` has the pods that are neither settled nor forgotten."""

    covers: Mapping[str, Cover]
    is_exact: bool = False
    """Whether the set of covered pods is known exactly."""
    listed: Mapping[str, PodPlacement] = field(default_factory=dict)
    """The report's placements by uid, including those of settled pods."""


def subjects(node: NodeHistory, sure: int) -> PodSet:
    """`sure`: after how many reports age alone decides."""
    settled, pending, leaving = [], [], []
    for record in node.records:
        if record.life is not LIVE:
            leaving.append(record)
        elif record.is_settled(node.report_count, sure):
            settled.append(record)
        else:
            pending.append(record)
    pending.sort(key=_arrival)
    leaving.sort(key=lambda record: record.end_order)
    recent = tuple(record for record in leaving if not record.is_forgotten(node.report_count, sure))
    remains = node.remains
    others = remains.keys() - {record.uid for record in recent} if remains else ()
    return PodSet(tuple(settled), tuple(pending), recent, tuple(remains[uid] for uid in others))


def lists_finished_pods(facts: RowFacts) -> bool:
    """Whether the node's pod resources API names finished pods, which hold nothing, as long as their objects exist."""
    return facts.rules.minor < LISTS_ACTIVE_PODS


def sure(facts: RowFacts) -> int:
    """After how many reports age alone decides, whatever such a report says."""
    return STUBBORN if facts.placements is not None else PATIENT if facts.fingerprint else SURE


def judge(
    facts: RowFacts, node: NodeHistory, resources: Resources, ensure: Callable[[Iterable[PodRecord]], None]
) -> Coverage:
    """Judges which pods the report covers. `ensure`: computes missing holdings of pods."""
    if facts.placements is not None:
        return _listed(node)
    pods = subjects(node, sure(facts))
    # At a start many pods have no holdings yet, and most fingerprints match without them.
    if facts.fingerprint and not facts.exclusive_only:
        found = _signed(facts, pods, node.report_count)
        if found is not None:
            return found
    if not facts.fingerprint and not pods.pending and not pods.leaving:
        return Coverage({})
    ensure((*pods.settled, *pods.pending, *pods.leaving))
    if facts.exclusive_only:
        found = _signed(facts, pods, node.report_count)
        if found is not None:
            return found
    if facts.fingerprint and not node.signs_known:
        pods = subjects(node, SURE)
    return _weighed(facts, node.report_count, pods, resources)


def _listed(node: NodeHistory) -> Coverage:
    by_uid = {each.uid: each for each in node.placements if each.uid}
    by_name = {f"{each.namespace}/{each.name}": each for each in node.placements if not each.uid}
    # All running pods, and the youngest of those that ended.
    now = node.report_count
    everyone = [each for each in node.records if each.life is LIVE or not each.is_forgotten(now, STUBBORN)]
    namesakes = _namesakes(everyone) if by_name else frozenset()
    covers, listed = {}, {}
    for record in everyone:
        uid = record.uid
        found = by_uid.get(uid)
        if found is None and record.name in by_name:
            if record.hash in namesakes:
                covers[uid] = _by_age(record, node.report_count)
                continue
            found = by_name[record.name]
        if found is None or _is_being_admitted(record, found):
            covers[uid] = Cover.NO
        else:
            covers[uid], listed[uid] = COVERED, found
    return Coverage(covers, is_exact=True, listed=listed)


def _is_being_admitted(record: PodRecord, found: PodPlacement) -> bool:
    """Whether the pod was predicted to hold something and is listed without: a kubelet lists a pod before it
    allocates."""
    if found.holdings or record.started is not None or record.listed is not None or not record.is_predicted:
        return False
    return record.holding is not None and bool(record.holding.entries)


def _by_age(record: PodRecord, report_count: int) -> Cover:
    """Judges pods of the same name by age, because the report may mean either."""
    if record.is_forgotten(report_count):
        return Cover.NO
    return Cover.YES if record.life is PodLife.LIVE and record.is_settled(report_count) else Cover.DOUBT


def _namesakes(pods: Iterable[PodRecord]) -> frozenset[int]:
    """Hashes of names that more than one of the pods has."""
    return frozenset(hash for hash, count in Counter(record.hash for record in pods).items() if count > 1)


def _signed(facts: RowFacts, pods: PodSet, report_count: int) -> Coverage | None:
    if not facts.fingerprint:
        return None
    signers = _exclusive(pods) if facts.exclusive_only else pods
    found = next((each for each in _candidates(signers) if _signature(each) == facts.fingerprint), None)
    if found is None:
        return None
    covered = {record.uid for record in (*found.pending, *found.leaving)}
    signed = {record.hash for record in (*found.pending, *found.leaving)}
    unsigned = {record.hash for record in (*pods.pending, *pods.leaving) if record.uid not in covered}
    covers = {}
    for record in (*pods.pending, *pods.leaving):
        known = Cover.YES if record.uid in covered else Cover.NO
        # Another set of pods with the same names has the same fingerprint, and a finished pod may only be named.
        named = record.life is PodLife.ENDED and record.uid in covered and lists_finished_pods(facts)
        is_either = record.hash in signed & unsigned
        covers[record.uid] = _by_age(record, report_count) if is_either else Cover.DOUBT if named else known
    return Coverage(covers, is_exact=True)


def _exclusive(pods: PodSet) -> PodSet:
    """The pods that hold something in a zone; finished pods hold nothing."""
    settled, pending, leaving = (
        tuple(filter(_holds_zones, each)) for each in (pods.settled, pods.pending, pods.leaving)
    )
    return PodSet(settled, pending, leaving)


def _holds_zones(record: PodRecord) -> bool:
    entries = record.holding.entries if record.holding else ()
    return bool(entries) and (entries[0].zones > 0 or any(entry.zones for entry in entries))


def _candidates(pods: PodSet) -> Iterator[PodSet]:
    """Sets that a report may speak of, likelier ones first, within a limit."""
    # An ended pod may also have started after the report, unless an earlier report covered it.
    arrivals = sorted((*pods.pending, *(each for each in pods.leaving if each.cover is not Cover.YES)), key=_arrival)
    sizes = product(dict.fromkeys(((), pods.remains)), range(len(pods.leaving), -1, -1), range(len(arrivals), -1, -1))
    for remains, gone, there in islice(sizes, MOST_TRIES):
        late = {record.uid for record in arrivals[there:]}
        yield PodSet(
            pods.settled,
            tuple(record for record in pods.pending if record.uid not in late),
            tuple(record for record in pods.leaving[gone:] if record.uid not in late),
            remains,
        )


def _arrival(record: PodRecord) -> tuple[bool, int]:
    return record.started is None and record.life is PodLife.LIVE, record.order


def _signature(pods: PodSet) -> str:
    hashes = [record.hash for record in (*pods.settled, *pods.pending, *pods.leaving)]
    return fingerprint.of_hashes(sorted((*hashes, *pods.remains)))


def _weighed(facts: RowFacts, report_count: int, pods: PodSet, resources: Resources) -> Coverage:
    used = _used(facts, resources)
    # If the fingerprint is of unknown pods, the amounts may be theirs.
    others = bool(facts.fingerprint)
    least, most = _weights(pods.settled)
    covers: dict[str, Cover] = {}
    open_ones = []
    for record in (*pods.pending, *pods.leaving):
        if record.after == report_count or not (others or _fit(least, _weights((record,))[0], used)):
            covers[record.uid] = Cover.NO
        else:
            open_ones.append(record)
    if not open_ones:
        return Coverage(covers)
    all_in = _fit(most, _weights(open_ones)[1], used)
    for record in open_ones:
        witnessed = all_in and (not others or (record.found and report_count == 1))
        covers[record.uid] = Cover.YES if witnessed else Cover.DOUBT
    return Coverage(covers)


def _used(facts: RowFacts, resources: Resources) -> Mapping[int, int]:
    """The amounts in use by column, summed over all zones."""
    stock, free = facts.supplies.stock, facts.supplies.free
    width, whole = len(stock.names), stock.allocatable
    places = resources.arranged(stock.names).places
    return {column: sum(whole[place::width]) - sum(free[place::width]) for column, place in places.items()}


def _fit(some: Mapping[int, int], others: Mapping[int, int], used: Mapping[int, int]) -> bool:
    return all(some.get(column, 0) + amount <= used.get(column, 0) for column, amount in others.items())


def _weights(pods: Iterable[PodRecord]) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """By column, the bounds of the sum that a report which covers the pods shows of them."""
    least: dict[int, int] = {}
    most: dict[int, int] = {}
    for record in pods:
        if record.holding is None:
            continue
        # Of pods with plain init containers it is not known how much is shown.
        vague = bool(record.pod.spec.init_containers) and podrecord.has_init_steps(record.pod)
        for entry in record.holding.entries:
            if entry.zones:
                most[entry.column] = most.get(entry.column, 0) + entry.amount
                if entry.certain and not vague:
                    least[entry.column] = least.get(entry.column, 0) + entry.amount
    return least, most
