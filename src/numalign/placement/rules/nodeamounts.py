"""What follows from nodes' amounts for a pod: whether it fits, and how it scores.

The numbers of NodeResourcesFit and NodeResourcesBalancedAllocation (kube-scheduler spec 1.8 to 1.10). Their rules say
what they ask in `AmountTerms`, `Totals` has them evaluated. The functions below are the only implementation. They are
written in the part of Python that numba compiles: `kernels.compiled` runs them as machine code over many nodes,
`evaluated` as they are for one. Nodes lie side by side, each a lane, so that processors compare and divide several
numbers at once. The order of operations is kube-scheduler's, because scores are truncated to integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Amounts = NDArray[np.int64]
Places = NDArray[np.integer[Any]]
Found = NDArray[np.int32]
Numbers = list[int] | Amounts
Given = Sequence[int] | Amounts
Lanes = list[list[int]] | Amounts
"""By number of the lane; a lane has a number for each node."""
Shares = list[list[float]] | NDArray[np.float64]

FIT, LEAST, MOST, RATIO, BALANCE = range(5)
"""What is evaluated: the code of NodeResourcesFit, its score by one of three strategies, or the balance."""
FULL: Final = 1
LAST_BIT: Final = 28
TOO_LARGE: Final = 1 << 30
WHOLE: Final = 100
HALF: Final = WHOLE // 2
LARGE: Final = (1 << 63) // WHOLE
"""A hundred times more does not fit into an int64."""
HALF_BITS, LOW, SIGN = 32, (1 << 32) - 1, 1 << 31
FIRST, SECOND, SUMS, SHARES = 0, 1, 2, 5
"""Lanes for sums, and how many there are; of shares there are so many."""
ONE_SUM: Final = [[0] for _ in range(SUMS)]
ONE_SHARE: Final = [[0.0] for _ in range(SHARES)]
"""Lanes of one node. Nothing in these outlives a call, and making them takes longer than many a call."""
NO_LINE: Final = (0,)
OUT: Final = -1
"""The rank of a row that is none to pick."""
NEVER: Final = -(1 << 29)
"""Less than any sum of scores; four times as little still is an int32."""


class Asked(Struct, frozen=True):
    """What the pod adds of one resource. `as_scored`: containers that ask for nothing count with what they are taken to
    need."""

    column: int
    amount: int
    weight: int = 1
    as_scored: bool = False


class AmountTerms(Struct, frozen=True, dict=True):
    what: int
    asked: tuple[Asked, ...]
    line: tuple[int, ...] = NO_LINE
    """For `RATIO`: the score at every utilization from 0 to 100."""

    @cached_property
    def amounts(self) -> tuple[int, ...]:
        return tuple([each.amount for each in self.asked])

    @cached_property
    def weights(self) -> tuple[int, ...]:
        return tuple([each.weight for each in self.asked])


class AmountRanks(Struct, frozen=True, dict=True):
    """What several rules say about amounts, as one number."""

    filters: tuple[AmountTerms, ...]
    scores: tuple[tuple[int, AmountTerms], ...]
    """With their weights."""


class RankedRows(NamedTuple):
    """What else the ranks of rows are made of."""

    place: NDArray[np.intp]
    """By row, the place that has its amounts."""
    base: Found
    """By row, what is added."""
    codes: NDArray[np.uint8]
    """By row, a code."""
    by_code: Found
    """By code, what is added."""


class AmountColumns(Protocol):
    """Amounts by column and place. A place is a row, or a kind of rows."""

    @property
    def allocatable(self) -> Amounts: ...

    @property
    def requested(self) -> Amounts: ...

    @property
    def scored(self) -> Amounts: ...

    @property
    def pods(self) -> Amounts: ...

    @property
    def most_pods(self) -> Amounts: ...


class AmountsKernel(Protocol):
    """This module, or `kernels.compiled`."""

    def amounts(self, terms: AmountTerms, columns: AmountColumns, places: Places) -> Found:
        """The outcome of every place, in their order."""
        ...

    def ranked(self, terms: AmountRanks, columns: AmountColumns, places: Places) -> Found:
        """The sum of the weighted scores of every place, `NEVER` where a filter refuses it."""
        ...

    def rank(
        self, terms: AmountRanks, columns: AmountColumns, places: Places, rows: RankedRows, ranks: Found
    ) -> tuple[int, int]:
        """The rank of every row, into `ranks`: the same, and what else is added; `OUT` where that is negative. The
        highest of them, and how many are not `OUT`."""
        ...


def evaluate(
    what: int,
    amounts: Given,
    weights: Given,
    line: Given,
    offered: Lanes,
    used: Lanes,
    pods: Given,
    most_pods: Given,
    found: Numbers,
    sums: Lanes,
    shares: Shares,
    count: int,
) -> None:
    """The outcome of the first `count` nodes, into `found`. `offered` and `used`, which is without the pod, are by
    resource and node."""
    if what == FIT:
        for lane in range(count):
            found[lane] = FULL if pods[lane] >= most_pods[lane] else 0
        for each in range(len(amounts)):
            shortfalls(found, count, each, amounts[each], offered[each], used[each])
    elif what == BALANCE:
        before, after = sums[FIRST], sums[SECOND]
        balance(before, shares, count, 0, amounts, offered, used)
        balance(after, shares, count, 1, amounts, offered, used)
        for lane in range(count):
            # Shifted, because dividing takes longer: both round down.
            found[lane] = HALF + ((HALF + after[lane] - before[lane]) >> 1)
    else:
        total, weight = sums[FIRST], sums[SECOND]
        for lane in range(count):
            total[lane], weight[lane] = 0, 0
        for each in range(len(amounts)):
            add(what, total, weight, count, amounts[each], weights[each], line, offered[each], used[each])
        for lane in range(count):
            if what == RATIO:
                # Rounded to the nearest, halves up.
                found[lane] = quotient(2 * total[lane] + weight[lane], max(2 * weight[lane], 1))
            else:
                # Go divides toward zero.
                score = quotient(abs(total[lane]), max(weight[lane], 1))
                found[lane] = score if total[lane] >= 0 else -score


def shortfalls(found: Numbers, count: int, place: int, need: int, offered: Given, used: Given) -> None:
    """What one resource adds to the code of NodeResourcesFit, which has a bit per reason: too many pods, each of the
    resources, and one of these beyond the node as a whole."""
    short = bit(place)
    for lane in range(count):
        if need > offered[lane] - used[lane]:
            found[lane] |= short | (TOO_LARGE if need > offered[lane] else 0)


def bit(place: int) -> int:
    # A code has one bit per resource; beyond that the last resources are reported together.
    return 2 << min(place, LAST_BIT)


def add(
    what: int,
    total: Numbers,
    weights: Numbers,
    count: int,
    need: int,
    weight: int,
    line: Given,
    offered: Given,
    used: Given,
) -> None:
    """What one resource adds to a score. It does not weigh on nodes that do not have it, nor where it adds nothing to a
    ratio; beyond full, the end of the line counts."""
    for lane in range(count):
        there = offered[lane]
        part = max(there - used[lane] - need, 0) if what == LEAST else min(used[lane] + need, there)
        score = percent(part, max(there, 1))
        if what == RATIO:
            score = line[max(score, 0)]
        counts = weight if there != 0 and (what != RATIO or score > 0) else 0
        total[lane] += score * counts
        weights[lane] += counts


def percent(part: int, whole: int) -> int:
    product = part * WHOLE if part < LARGE else wrapped(part)
    return quotient(product, whole) if product >= 0 else -quotient(-product, whole)


def wrapped(part: int) -> int:
    """A hundred times `part` as an int64 has it after an overflow: kube-scheduler scores nodes of 2^57 bytes and more
    by such products. By halves, because Python's integers do not overflow and those of machine code do."""
    low = (part & LOW) * WHOLE
    high = ((part >> HALF_BITS) * WHOLE + (low >> HALF_BITS)) & LOW
    return (high - 2 * SIGN if high >= SIGN else high) * (LOW + 1) + (low & LOW)


def quotient(part: int, whole: int) -> int:
    """`part // whole`, as processors divide several numbers at once: floats come within one of a small result."""
    found = int(float(part) / float(whole))
    rest = part - found * whole
    return found - 1 if rest < 0 else found + 1 if rest >= whole else found


def balance(
    found: Numbers, shares: Shares, count: int, times: int, amounts: Given, offered: Lanes, used: Lanes
) -> None:
    """100 when the same share of everything that the node has is used, the pod's amounts added so many times."""
    there, total, squares, first, second = shares[0], shares[1], shares[2], shares[3], shares[4]
    for lane in range(count):
        there[lane], total[lane], squares[lane], first[lane], second[lane] = 0.0, 0.0, 0.0, 0.0, 0.0
    for each in range(len(amounts)):
        most, part, added = offered[each], used[each], times * amounts[each]
        for lane in range(count):
            if most[lane] != 0:
                first[lane] = second[lane]
                second[lane] = used_share(part[lane] + added, most[lane])
                total[lane] += second[lane]
                there[lane] += 1.0
    for each in range(len(amounts) if len(amounts) > 2 else 0):
        most, part, added = offered[each], used[each], times * amounts[each]
        for lane in range(count):
            if most[lane] != 0:
                distance = used_share(part[lane] + added, most[lane]) - total[lane] / there[lane]
                squares[lane] += distance * distance
    for lane in range(count):
        spread = abs((first[lane] - second[lane]) / 2) if there[lane] == 2.0 else 0.0
        if there[lane] > 2.0:
            spread = math.sqrt(squares[lane] / there[lane])
        found[lane] = int((1 - spread) * WHOLE)


def used_share(used: int, offered: int) -> float:
    return min(float(used) / float(offered), 1.0)


def amounts(terms: AmountTerms, columns: AmountColumns, places: Places) -> Found:
    """The outcome of every place, in plain Python."""
    offered = [columns.allocatable[each.column][places].tolist() for each in terms.asked]
    used = [_used(each, columns)[each.column][places].tolist() for each in terms.asked]
    pods, most_pods, count = columns.pods[places].tolist(), columns.most_pods[places].tolist(), len(places)
    found, sums, shares = [0] * count, [[0] * count for _ in range(SUMS)], [[0.0] * count for _ in range(SHARES)]
    asked = terms.what, terms.amounts, terms.weights, terms.line
    evaluate(*asked, offered, used, pods, most_pods, found, sums, shares, count)
    return np.array(found, np.int32)


def ranked(terms: AmountRanks, columns: AmountColumns, places: Places) -> Found:
    """The sum of the weighted scores of every place, `NEVER` where a filter refuses it."""
    found = np.zeros(len(places), np.int32)
    for weight, each in terms.scores:
        found += np.int32(weight) * amounts(each, columns, places)
    for each in terms.filters:
        found[amounts(each, columns, places) != 0] = NEVER
    return found


def rank(terms: AmountRanks, columns: AmountColumns, places: Places, rows: RankedRows, ranks: Found) -> tuple[int, int]:
    """The rank of every row, into `ranks`, without a loop in Python over all of them."""
    found = ranked(terms, columns, places).take(rows.place).astype(np.int64)
    found += rows.base
    found += rows.by_code.take(rows.codes)
    ranks[:] = np.maximum(found, OUT)
    return int(ranks.max(initial=OUT)), int(np.count_nonzero(ranks != OUT))


def evaluated(terms: AmountTerms, columns: AmountColumns, place: int) -> int:
    """The outcome of one place."""
    offered = [[columns.allocatable.item(each.column, place)] for each in terms.asked]
    used = [[_used(each, columns).item(each.column, place)] for each in terms.asked]
    pods, most_pods, found = [columns.pods.item(place)], [columns.most_pods.item(place)], [0]
    asked = terms.what, terms.amounts, terms.weights, terms.line
    evaluate(*asked, offered, used, pods, most_pods, found, ONE_SUM, ONE_SHARE, 1)
    return found[0]


def fit_code(amounts: Sequence[int], offered: Sequence[int], used: Sequence[int], pods: int, most_pods: int) -> int:
    """The code of NodeResourcesFit for a node with these amounts."""
    found = [FULL if pods >= most_pods else 0]
    for place, each in enumerate(zip(amounts, offered, used, strict=True)):
        shortfalls(found, 1, place, each[0], each[1:2], each[2:])
    return found[0]


def _used(asked: Asked, columns: AmountColumns) -> Amounts:
    return columns.scored if asked.as_scored else columns.requested
