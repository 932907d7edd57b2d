"""Zones with less free than the pods explain that a report covers.

`judging` asks after every report that names no pods. A publisher that is right deducts nothing but what its pods hold,
so somebody holds more than was believed, or elsewhere. What was told once is not told again while it lasts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import lt
from typing import Final

from numalign.placement.ledger.divergences import Divergence, DivergenceKind
from numalign.placement.ledger.scales import Scales
from numalign.placement.reports.nodefacts import RowFacts

TOTALS: Final = DivergenceKind.TOTALS
POWERS: Final = [1]
"""Of two, as far as they were needed."""


def unexplained(scales: Scales, *, sure: bool) -> list[Divergence]:
    """Where pods may be missing, only what is so twice in a row."""
    book, free = scales.book, scales.facts.supplies.free
    expected = _expected(scales)
    short = _short(free, expected)
    if short and any(record.holding is None for record in book.records.values()):
        scales.need(list(book.records.values()))
        expected = _expected(scales)
        short = _short(free, expected)
    counted = book.contradicted & short
    new = (short if sure else short & book.suspected) & ~counted
    book.suspected, book.contradicted = short, counted | new
    return _totals(scales.facts, expected, new) if new else []


def _short(free: Sequence[int], expected: Sequence[int]) -> int:
    """The spots that are, as a mask: in a cluster whose pods are not listed yet there are many."""
    while len(POWERS) < len(free):
        POWERS.append(1 << len(POWERS))
    return sum(compress(POWERS, map(lt, free, expected)))


def _expected(scales: Scales) -> Sequence[int]:
    """What would be free if nobody but the pods that the report may cover held anything."""
    stock, explained = scales.facts.supplies.stock, scales.book.explained()
    if not explained:
        return stock.allocatable
    expected, width = list(stock.allocatable), len(stock.names)
    places = scales.resources.arranged(stock.names).places
    for (column, position), amount in explained.items():
        if column in places and 0 <= position < len(expected) // width:
            expected[position * width + places[column]] -= amount
    return expected


def _totals(facts: RowFacts, expected: Sequence[int], spots: int) -> list[Divergence]:
    """One for every resource, of all its zones that are short."""
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
