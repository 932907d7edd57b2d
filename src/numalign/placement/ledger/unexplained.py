"""What a report deducts for pods that nobody here knows.

`judging` asks with every report. A pod that ended before this process first saw the cluster, and whose object is gone,
is in the node's last report all the same: what it had may be free by now, and attract pods that were meant for another
zone. It may as well be a pod that our watch shows in a moment. So it counts as perhaps free, in two reports: what
the third still has is there (`coverage` says why). Where pods are listed each one is judged by itself. Where the first
two reports ever seen of a node have fingerprints of other pods, all that known ones leave unexplained counts. A report
with neither is taken at its word: nothing says that there is anybody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from numalign.api.attributes.podplacements import PodPlacement
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import observed
from numalign.placement.ledger.charges import Cover
from numalign.placement.ledger.holdings import Entry
from numalign.placement.ledger.podrecord import SURE, Record
from numalign.placement.reports.nodefacts import RowFacts

Entries = tuple[Entry, ...]
ALL = ""
"""Stands for the uid where pods are not listed."""


def found(facts: RowFacts, records: Sequence[Record], resources: Resources) -> dict[str, Entries]:
    """By uid, what the report has of pods without a record; where it lists none, of all of them together."""
    if facts.placements is not None:
        return {
            each.uid or f"{each.namespace}/{each.name}": observed.read(each, facts, resources, reuses=True).entries
            for each in _unknown(facts.placements, records)
        }
    entries = tuple(_unexplained(facts, records, resources))
    return {ALL: entries} if entries else {}


def perhaps_free(strangers: Mapping[str, Entries], since: Mapping[str, int], looks: int) -> Entries:
    """`since`: looks when each was first found."""
    recent = [entries for uid, entries in strangers.items() if looks < since[uid] + SURE]
    return tuple(entry for entries in recent for entry in entries if entry.zones)


def _unknown(placements: Iterable[PodPlacement], records: Iterable[Record]) -> list[PodPlacement]:
    known = {name for record in records for name in (record.uid, record.name)}
    return [each for each in placements if (each.uid or f"{each.namespace}/{each.name}") not in known]


def _unexplained(facts: RowFacts, records: Iterable[Record], resources: Resources) -> Iterator[Entry]:
    stock, known = facts.supplies.stock, _explained(records)
    for place, name in enumerate(stock.names):
        offered, free = stock.of(place, stock.allocatable), stock.of(place, facts.supplies.free)
        used = [there - left for there, left in zip(offered, free, strict=True)]
        zones = sum(1 << position for position, amount in enumerate(used) if amount > 0)
        rest = sum(used) - known.get(resources.column(name), 0)
        if rest > 0 and zones:
            yield Entry(resources.column(name), rest, zones, certain=False)


def _explained(records: Iterable[Record]) -> dict[int, int]:
    """By column, what the report has surely deducted for pods that we know."""
    known: dict[int, int] = {}
    for record in records:
        for entry in record.holding.entries if record.cover is Cover.YES and record.holding is not None else ():
            known[entry.column] = known.get(entry.column, 0) + entry.amount
    return known
