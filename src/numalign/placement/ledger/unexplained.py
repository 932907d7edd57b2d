"""Amounts that a report deducts and that the known pods do not explain.

`reconcile` calls `found` for reports that may cover pods the scheduler has not seen. A pod that ended before this
process started, and whose object is gone, can still be in the node's last report: what it held may be free by now. It
may as well be a pod that the watch shows in a moment. So its amounts count as perhaps free in two reports; what the
third report still has is there (`coverage` says why). Where a report lists its pods, each is judged by itself. Where
the first two reports of a node have fingerprints of other pods, all that known pods leave unexplained counts. A report
with neither is taken as it is.

`reconcile` calls `unexplained` after every report that names no pods: zones with less free than the covered pods
explain are divergences. Each is counted once while it lasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from operator import lt
from typing import Final

from numalign.api.attributes.podplacements import PodPlacement
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import Resources
from numalign.placement.ledger import observed
from numalign.placement.ledger.charges import Cover
from numalign.placement.ledger.divergences import Divergence, DivergenceKind
from numalign.placement.ledger.nodeledger import NodeLedger
from numalign.placement.ledger.podrecord import PodRecord
from numalign.placement.ledger.unobserved import UnobservedPods

Entries = tuple[Entry, ...]
ALL = ""
"""The uid for reports that do not list pods."""


def found(facts: RowFacts, records: Sequence[PodRecord], resources: Resources) -> dict[str, Entries]:
    """By uid, what the report has of pods without a record; if it lists no pods, of all of them together."""
    if facts.placements is not None:
        return {
            each.uid or f"{each.namespace}/{each.name}": observed.read(each, facts, resources, reuses=True).entries
            for each in _unknown(facts.placements, records)
        }
    entries = tuple(_unexplained(facts, records, resources))
    return {ALL: entries} if entries else {}


def _unknown(placements: Iterable[PodPlacement], records: Iterable[PodRecord]) -> list[PodPlacement]:
    known = {name for record in records for name in (record.uid, record.name)}
    return [each for each in placements if (each.uid or f"{each.namespace}/{each.name}") not in known]


def _unexplained(facts: RowFacts, records: Iterable[PodRecord], resources: Resources) -> Iterator[Entry]:
    stock, known = facts.supplies.stock, _explained(records)
    for place, name in enumerate(stock.names):
        offered, free = stock.of(place, stock.allocatable), stock.of(place, facts.supplies.free)
        used = [there - left for there, left in zip(offered, free, strict=True)]
        zones = sum(1 << position for position, amount in enumerate(used) if amount > 0)
        rest = sum(used) - known.get(resources.column(name), 0)
        if rest > 0 and zones:
            yield Entry(resources.column(name), rest, zones, certain=False)


def _explained(records: Iterable[PodRecord]) -> dict[int, int]:
    """By column, what the report has certainly deducted for known pods."""
    known: dict[int, int] = {}
    for record in records:
        for entry in record.holding.entries if record.cover is Cover.YES and record.holding is not None else ():
            known[entry.column] = known.get(entry.column, 0) + entry.amount
    return known


TOTALS: Final = DivergenceKind.TOTALS
POWERS: Final = [1]
"""Powers of two, computed as far as they were needed."""


def unexplained(
    node_ledger: NodeLedger, facts: RowFacts, unobserved: UnobservedPods, *, sure: bool
) -> list[Divergence]:
    """The divergences of a report. If pods may be missing (not `sure`), only spots that are short twice in a row."""
    free, resources = facts.supplies.free, unobserved.resources
    expected = _expected(node_ledger, facts, resources)
    short = _short(free, expected)
    if short and any(record.holding is None for record in node_ledger.records.values()):
        unobserved.ensure_all(list(node_ledger.records.values()), node_ledger, facts)
        expected = _expected(node_ledger, facts, resources)
        short = _short(free, expected)
    new = node_ledger.unexplained_spots.note(short, sure=sure)
    return _totals(facts, expected, new) if new else []


def _short(free: Sequence[int], expected: Sequence[int]) -> int:
    """The spots that are short, as a bit mask, because a cluster whose pods are not listed yet has many."""
    while len(POWERS) < len(free):
        POWERS.append(1 << len(POWERS))
    return sum(compress(POWERS, map(lt, free, expected)))


def _expected(node_ledger: NodeLedger, facts: RowFacts, resources: Resources) -> Sequence[int]:
    """The free amounts if only the pods that the report may cover held anything."""
    stock, explained = facts.supplies.stock, node_ledger.explained()
    if not explained:
        return stock.allocatable
    expected, width = list(stock.allocatable), len(stock.names)
    places = resources.arranged(stock.names).places
    for (column, position), amount in explained.items():
        if column in places and 0 <= position < len(expected) // width:
            expected[position * width + places[column]] -= amount
    return expected


def _totals(facts: RowFacts, expected: Sequence[int], spots: int) -> list[Divergence]:
    """One divergence per resource, with all its zones that are short."""
    names, zones, free = facts.supplies.stock.names, facts.rules.zones, facts.supplies.free
    width, is_short = len(names), list(map(spots.__and__, POWERS))
    by_name = [(name, is_short[place::width], place) for place, name in enumerate(names)]
    return [
        Divergence(
            kind=TOTALS,
            node=facts.node,
            resource=name,
            observed=tuple(compress(zones, own)),
            modelled=sum(compress(expected[place::width], own)),
            reported=sum(compress(free[place::width], own)),
        )
        for name, own, place in by_name
        if any(own)
    ]
