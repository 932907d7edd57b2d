"""Zones with less free than the pods explain that a report covers.

`judging` asks after every report that names no pods. A publisher that is right deducts nothing but what its pods hold,
so somebody holds more than was believed, or elsewhere. What was told once is not told again while it lasts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import lt
from typing import Final

from numalign.placement.divergences import Divergence, DivergenceKind
from numalign.placement.scales import Scales

POWERS: Final = [1]
"""Of two, as far as they were needed."""


def unexplained(scales: Scales, *, sure: bool) -> list[Divergence]:
    """Where pods may be missing, only what is so twice in a row."""
    book = scales.book
    short = _short(scales)
    if short and any(record.holding is None for record in book.records.values()):
        scales.need(list(book.records.values()))
        short = _short(scales)
    counted = book.contradicted & short
    new = (short if sure else short & book.suspected) & ~counted
    book.suspected, book.contradicted = short, counted | new
    return _totals(scales, new) if new else []


def _short(scales: Scales) -> int:
    """The spots that are, as a mask: in a cluster whose pods are not listed yet there are many."""
    free, expected = scales.facts.supplies.free, _expected(scales)
    while len(POWERS) < len(free):
        POWERS.append(1 << len(POWERS))
    return sum(compress(POWERS, map(lt, free, expected)))


def _expected(scales: Scales) -> Sequence[int]:
    """What would be free if nobody but the pods that the report may cover held anything."""
    stock, explained = scales.facts.supplies.stock, scales.book.sums.explained
    if not explained:
        return stock.allocatable
    expected, width = list(stock.allocatable), len(stock.names)
    places = scales.resources.arranged(stock.names).places
    for (column, position), amount in explained.items():
        if column in places and 0 <= position < len(expected) // width:
            expected[position * width + places[column]] -= amount
    return expected


def _totals(scales: Scales, spots: int) -> list[Divergence]:
    """One for every resource, of all its zones that are short."""
    facts = scales.facts
    names, zones, free = facts.supplies.stock.names, facts.rules.zones, facts.supplies.free
    expected, width = _expected(scales), len(names)
    short = [[spot for spot in range(place, len(free), width) if spots >> spot & 1] for place in range(width)]
    return [
        Divergence(
            kind=DivergenceKind.TOTALS,
            node=facts.node,
            resource=names[place],
            observed=tuple([zones[spot // width] for spot in own]),
            modelled=sum(map(expected.__getitem__, own)),
            reported=sum(map(free.__getitem__, own)),
        )
        for place, own in enumerate(short)
        if own
    ]
