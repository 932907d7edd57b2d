"""One node's ledger: its report, the records of its pods, and the sums of what they take and give back.

`ledger` and `reconcile` change it through its methods; `row` says what is free. Sums follow every change and are never
recomputed. Free amounts are never more than the node can have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct, field, structs

from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.nrt.placementcodec import Payload
from numalign.placement.columns import zonesets
from numalign.placement.columns.holdings import Entry, Holding
from numalign.placement.columns.nodefacts import Groups, RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import memorygroups
from numalign.placement.ledger.charges import HOMELESS, NONE, Amount, Cover, PodCharges, PodLife
from numalign.placement.ledger.podrecord import SURE, PodRecord

Spot = tuple[int, int]
"""Column and position."""
Table = list[int]
"""Zone by zone, in each by column."""
Tops = Mapping[int, Sequence[int]]
"""By column and position: the most that can be free."""
Counted = tuple[PodCharges, bool]
"""The charges of a pod, and whether it is pending."""
NOT_COUNTED: Final[Counted] = NONE, False
NO_ZONES: Final[tuple[int, ...]] = ()
MOST_KNOWN: Final = 8192


class Row(Struct, frozen=True, kw_only=True):
    """What is free on a node. `settled` leaves out pods that are pending; `free` has all of them charged."""

    facts: RowFacts
    free: Table
    settled: Table
    homeless: list[int]
    """By column: free devices that belong to no zone, all pods charged."""
    settled_homeless: list[int]
    entries: tuple[Entry, ...]
    """Charges in `free` whose zones are not known exactly, or that are not certain."""
    settled_entries: tuple[Entry, ...]
    pending: tuple[Holding, ...]
    """Pending pods in the order of binding."""
    groups: Groups | None
    settled_groups: Groups | None

    @property
    def width(self) -> int:
        """How many columns a zone has in the tables."""
        return len(self.homeless)


class ChargeSums(Struct):
    """The sums of the charges of many pods. Pending pods are summed apart, so that a row can leave them out."""

    settled: dict[Spot, int] = field(default_factory=dict)
    pending: dict[Spot, int] = field(default_factory=dict)
    explained: dict[Spot, int] | None = field(default_factory=dict)
    """The most that the report may have deducted for pods that it covers. None: not needed while reports name pods."""
    vague: dict[str, None] = field(default_factory=dict)
    """Pods whose charges have more than exact amounts."""

    def change(self, uid: str, before: Counted, after: Counted) -> None:
        """Replaces the charges of a pod in the sums."""
        (old, was_pending), (new, is_pending) = before, after
        if old.exact:
            _add(self.pending if was_pending else self.settled, old.exact, -1)
        if new.exact:
            _add(self.pending if is_pending else self.settled, new.exact, 1)
        # Usually the explained amounts of a pod stay the same when its phase changes.
        if self.explained is not None and old.explained is not new.explained:
            _add(self.explained, _everywhere(old.explained), -1)
            _add(self.explained, _everywhere(new.explained), 1)
        self.vague.pop(uid, None)
        if new.is_vague:
            self.vague[uid] = None


class UnknownPods(Struct):
    """Amounts that the report deducts for pods that the ledger does not have."""

    since: dict[str, int] = field(default_factory=dict)
    """By uid: the report count at which the pod was first found."""
    perhaps_free: tuple[Entry, ...] = ()
    """Amounts that these pods may have released by now."""

    def note(self, found: Mapping[str, tuple[Entry, ...]], report_count: int) -> None:
        """`found`: by uid, the amounts that the report has of each. What the third report still has is in use."""
        self.since = {uid: self.since.get(uid, report_count) for uid in found}
        recent = [entries for uid, entries in found.items() if report_count < self.since[uid] + SURE]
        self.perhaps_free = tuple(entry for entries in recent for entry in entries if entry.zones)


class UnexplainedSpots(Struct):
    """Spots where reports have less free than their pods explain, as bits: column by column, in each by position."""

    suspected: int = 0
    """The spots of the last report."""
    counted: int = 0
    """The spots among them that were counted as divergences."""

    def note(self, short: int, *, sure: bool) -> int:
        """The spots to count: all of them, or only those that are short twice in a row."""
        counted = self.counted & short
        new = (short if sure else short & self.suspected) & ~counted
        self.suspected, self.counted = short, counted | new
        return new


class NodeLedger:
    """A node's report, the records of its pods by uid, and their sums."""

    __slots__ = (
        "facts",
        "is_exact",
        "matched",
        "named",
        "node",
        "payload",
        "pending",
        "records",
        "remains",
        "report_count",
        "restless",
        "sums",
        "terminating",
        "unexplained_spots",
        "unjudged",
        "unknown_pods",
        "unplaced",
        "zones",
    )

    def __init__(self, node: str) -> None:
        self.node = node
        self.facts: RowFacts | None = None
        self.zones = NO_ZONES
        """Ids that positions in records stand for; they outlive the report."""
        self.report_count = 0
        """How many different reports have come in."""
        self.records: dict[str, PodRecord] = {}
        self.remains: dict[str, int] = {}
        """Finished pods whose objects are still there, by uid: their hashes. Kubelets before 1.34 list them."""
        self.pending: dict[str, PodRecord] = {}
        self.sums = ChargeSums()
        self.payload: Payload | None = None
        """The last one that was read with the pods that the report covers."""
        self.is_exact = False
        """Whether it is known just which pods the report speaks of."""
        self.matched: int | None = None
        """Report count when a fingerprint was last that of pods that we know; None: never."""
        self.named: tuple[PodPlacement, ...] | None = None
        """What the last report said of each of its pods, if it named them all by uid."""
        self.restless: dict[str, PodRecord] = {}
        """If it did: pods that a report is to be held against even if it says of them what the last one said."""
        self.unjudged = False
        """Whether a pod came after the report that the report may cover."""
        self.terminating: dict[str, bool] = {}
        """Pods that were deleted and still run: their resources may be free any moment. False: they take so long that
        no other pod waits for their end."""
        self.unplaced: dict[str, PodRecord] = {}
        """Pods that another scheduler has bound and that the model was not asked about."""
        self.unknown_pods = UnknownPods()
        self.unexplained_spots = UnexplainedSpots()

    # The report

    def take(self, facts: RowFacts, *, again: bool = False) -> int:
        """Takes a new report; returns the number of entries in zones that the node does not have any more.

        `again`: the report is the same as before, and only its interpretation changed."""
        vanished = self._move(facts.rules.zones) if self.zones != facts.rules.zones else 0
        if self.facts is not None and self.facts.supplies.stock.names != facts.supplies.stock.names:
            self.unexplained_spots = UnexplainedSpots()
        # A repeated report is not a new observation of the node: a watch may deliver it twice.
        if not again and (facts.placements is not None or facts != self.facts):
            self.report_count += 1
        self.facts = facts
        return vanished

    def _move(self, zones: tuple[int, ...]) -> int:
        """Moves all holdings to the positions of the node's new zones."""
        vanished = 0
        for record in self.records.values():
            if record.holding is None:
                continue
            holding = zonesets.moved_holding(record.holding, self.zones, zones)
            vanished += len(record.holding.entries) - len(holding.entries)
            # The report's placement of the pod must be read again at the new positions.
            record.holding, record.listed, record.hidden = holding, None, ()
            self.put(record)
        self.zones, self.unexplained_spots = zones, UnexplainedSpots()
        return vanished

    def drop_report(self) -> None:
        self.facts = None

    def judged(self, *, is_exact: bool, matches: bool = False) -> None:
        """Marks the report as judged. `matches`: its fingerprint is that of known pods."""
        self.unjudged, self.is_exact = False, is_exact
        if matches:
            self.matched = self.report_count

    # Pods

    def find(self, record: PodRecord) -> None:
        """Enters a pod that was not on the node before: the report may cover it, or the model places it."""
        self.unplaced[record.uid], self.unjudged = record, True
        self.put(record)

    def doubt(self, record: PodRecord) -> None:
        """Marks an ended pod to be judged again: an earlier report may already account for its end."""
        if record.cover is Cover.YES and not self.is_exact:
            record.cover, self.unjudged = Cover.DOUBT, True

    def cover(self, record: PodRecord, cover: Cover) -> None:
        """Sets whether the report covers the pod. The model places a pod that no report covers."""
        record.cover = cover
        if cover is Cover.YES:
            record.reported = True
            self.unplaced.pop(record.uid, None)
            record.forecast = None
        elif record.holding is None and record.life is PodLife.LIVE:
            self.unplaced[record.uid] = record

    def put(self, record: PodRecord) -> None:
        """Enters a record, or updates the sums after a record changed."""
        uid, before, is_pending = record.uid, record.share, record.is_pending
        was_pending = self.pending.pop(uid, None) is not None
        if is_pending:
            self.pending[uid] = record
        record.share = after = record.computed_share()
        self.records[uid] = record
        if self.named is not None:
            self._watch(record)
        # A pod without a holding so far has no charges, pending or not.
        if after is not before or (is_pending != was_pending and after is not NONE):
            self.sums.change(uid, (before, was_pending), (after, is_pending))

    def name(self, placements: tuple[PodPlacement, ...] | None) -> None:
        """Stores the placements of a report that names its pods, or drops them for one that does not."""
        was_named, self.named = self.named is not None, placements
        if placements is None:
            self.restless.clear()
        elif not was_named:
            self.sums.explained = None
            for record in self.records.values():
                self._watch(record)

    def _watch(self, record: PodRecord) -> None:
        if record.is_quiet:
            self.restless.pop(record.uid, None)
        else:
            self.restless[record.uid] = record

    def strike(self, uid: str) -> None:
        record = self.records.pop(uid)
        self.unplaced.pop(uid, None)
        self.terminating.pop(uid, None)
        self.restless.pop(uid, None)
        self.sums.change(uid, (record.share, self.pending.pop(uid, None) is not None), NOT_COUNTED)
        record.share = NONE

    def explained(self) -> Mapping[Spot, int]:
        """The most that the report may have deducted for covered pods; updated from now on."""
        if self.sums.explained is None:
            self.sums.explained = {}
            for record in self.records.values():
                _add(self.sums.explained, _everywhere(record.share.explained), 1)
        return self.sums.explained

    def row(self, resources: Resources) -> Row | None:
        """What is free on the node; None: it has no report."""
        return _row(self, self.facts, resources) if self.facts is not None else None


def ceilings(facts: RowFacts, resources: Resources) -> Tops:
    """The most that can be free, including devices of several zones."""
    stock = facts.supplies.stock
    places = resources.arranged(stock.names).places
    found = {column: stock.tops[place] for column, place in places.items()}
    for each in facts.classes:
        column = resources.column(each.resource)
        below = found.get(column, (0,) * len(facts.rules.zones))
        found[column] = tuple(top + each.size * (each.zones >> place & 1) for place, top in enumerate(below))
    return found


def _row(node_ledger: NodeLedger, facts: RowFacts, resources: Resources) -> Row:
    settled, settled_homeless = _reported(facts, resources)
    width = len(settled_homeless)
    if (
        not node_ledger.sums.settled
        and not node_ledger.sums.vague
        and not node_ledger.pending
        and not node_ledger.unknown_pods.perhaps_free
    ):
        return _alike(facts, settled, settled_homeless, _groups(node_ledger, facts, resources))
    tops = ceilings(facts, resources)
    grouped = facts.groups is not None
    _apply(settled, settled_homeless, node_ledger.sums.settled)
    _cut(settled, width, tops, node_ledger.sums.settled)
    vague = sorted((node_ledger.records[uid] for uid in node_ledger.sums.vague), key=lambda record: record.order)
    lasting = [record.share for record in vague if not record.is_pending]
    entries = _vague(
        settled, width, tops, [*lasting, PodCharges(doubtful=node_ledger.unknown_pods.perhaps_free)], grouped=grouped
    )
    groups = _groups(node_ledger, facts, resources)
    if not node_ledger.pending:
        return _alike(facts, settled, settled_homeless, groups, tuple(entries))
    free, homeless = list(settled), list(settled_homeless)
    _apply(free, homeless, node_ledger.sums.pending)
    waiting = _vague(free, width, tops, [record.share for record in vague if record.is_pending], grouped=grouped)
    pending = sorted(node_ledger.pending.values(), key=lambda record: record.order)
    return Row(
        facts=facts,
        free=free,
        settled=settled,
        homeless=homeless,
        settled_homeless=settled_homeless,
        entries=(*entries, *waiting),
        settled_entries=tuple(entries),
        pending=tuple(record.holding for record in pending if record.holding is not None),
        groups=groups,
        settled_groups=_groups(node_ledger, facts, resources, pending=False),
    )


def _groups(node_ledger: NodeLedger, facts: RowFacts, resources: Resources, *, pending: bool = True) -> Groups | None:
    records, perhaps_free = node_ledger.records.values(), node_ledger.unknown_pods.perhaps_free
    return memorygroups.groups(facts, records, resources, perhaps_free=perhaps_free, pending=pending)


def _alike(
    facts: RowFacts, free: Table, homeless: list[int], groups: Groups | None, entries: tuple[Entry, ...] = ()
) -> Row:
    """A row without pending pods: one table serves as `free` and `settled`."""
    return Row(
        facts=facts,
        free=free,
        settled=free,
        homeless=homeless,
        settled_homeless=homeless,
        entries=entries,
        settled_entries=entries,
        pending=(),
        groups=groups,
        settled_groups=groups,
    )


def _vague(free: Table, width: int, tops: Tops, shares: Sequence[PodCharges], *, grouped: bool) -> list[Entry]:
    """Applies charges and returns with bounds; what cannot be expressed in numbers is returned as entries."""
    entries: list[Entry] = []
    maybe: dict[Spot, Entry] = {}
    for share in shares:
        entries += share.charged
        for entry in share.blocks:
            if grouped and entry.column in tops:
                _spread(free, width, entry, -1, tops)
            else:
                entries.append(entry)
        for entry in share.returned:
            _spread(free, width, entry, 1, tops)
        for entry in share.doubtful:
            _collect(maybe, entry)
    return [*entries, *_raise(free, width, tops, maybe)]


def _collect(maybe: dict[Spot, Entry], entry: Entry) -> None:
    for position in zonesets.positions(entry.zones):
        spot = entry.column, position
        before = maybe.get(spot)
        amount = entry.amount + (before.amount if before else 0)
        span = entry.span if before is None or before.span == entry.span else 0
        maybe[spot] = Entry(entry.column, amount, 1 << position, certain=False, span=span)


def _raise(free: Table, width: int, tops: Tops, maybe: Mapping[Spot, Entry]) -> Iterator[Entry]:
    """Adds amounts that may be free to the upper bound; an uncertain charge of equal size keeps the lower bound."""
    for (column, position), entry in sorted(maybe.items(), key=lambda each: each[0]):
        place = position * width + column
        if column in tops and place < len(free):
            gain = min(entry.amount, tops[column][position] - free[place])
            if gain > 0:
                free[place] += gain
                yield structs.replace(entry, amount=gain)


def _spread(free: Table, width: int, entry: Entry, sign: int, tops: Tops) -> None:
    # Only the sum over a group counts; where the group ends with this block, all of it is free again (engine spec R5).
    left = entry.amount
    zones = [position for position in zonesets.positions(entry.zones) if position * width < len(free)]
    for position in zones if entry.column in tops else ():
        place = position * width + entry.column
        have = free[place]
        room = tops[entry.column][position] - have if sign > 0 else have
        last = sign < 0 and position == zones[-1]
        part = left if last else min(left, max(0, room))
        free[place] += sign * part
        left -= part


def _reported(facts: RowFacts, resources: Resources) -> tuple[Table, list[int]]:
    supplies, names = facts.supplies, facts.supplies.stock.names
    places, width, _ = resources.arranged(names)
    homeless = [0] * width
    for column, place in places.items() if supplies.homeless else ():
        homeless[column] = supplies.homeless[place]
    nothing = [0] * (width * len(facts.rules.zones))
    return resources.by_column(names, supplies.free) if supplies.free else nothing, homeless


def _apply(free: Table, homeless: list[int], changes: Mapping[Spot, int]) -> None:
    width = len(homeless)
    for (column, position), amount in changes.items():
        if column >= width:
            continue
        if position == HOMELESS:
            homeless[column] += amount
        elif position * width < len(free):
            free[position * width + column] += amount


def _cut(free: Table, width: int, tops: Tops, changed: Mapping[Spot, int]) -> None:
    for column, position in changed:
        if 0 <= position * width < len(free) and column in tops:
            place, top = position * width + column, tops[column][position]
            if free[place] > top:
                free[place] = top


@lru_cache(maxsize=MOST_KNOWN)
def _everywhere(entries: tuple[Entry, ...]) -> list[Amount]:
    """Replicas in the same zones have the same entries."""
    return [
        ((entry.column, position), entry.amount) for entry in entries for position in zonesets.positions(entry.zones)
    ]


def _add(sums: dict[Spot, int], amounts: Iterable[Amount], sign: int) -> None:
    for spot, amount in amounts:
        total = sums.get(spot, 0) + sign * amount
        if total:
            sums[spot] = total
        else:
            sums.pop(spot, None)
