"""How good a fitting row is: 1 to 100 by one of four strategies, in whole numbers only.

Every container that asks for something is scored by what its zones (all zones, if it is not aligned) have before it is
placed; the pod's score is the mean. A resource counts if the container asks for some of it and its zones have any.

LeastAllocated is the weighted mean of the shares that stay free, MostAllocated what is missing to 100;
BalancedAllocation takes 100 times the standard deviation of the used shares off 100, weights only say what counts;
LeastNUMANodes takes off a fixed amount for every zone beyond the first. Part of the row kernels: see `work`."""

from __future__ import annotations

import math
from typing import Final

from numalign.placement.kernels.hints import summed
from numalign.placement.kernels.plan import BALANCED, LEAST, MOST, Plan
from numalign.placement.kernels.work import Work
from numalign.placement.rules.nodeamounts import quotient

PER_ZONE: Final = 12
"""What each zone beyond the first costs: eight of them still leave a score above zero."""
WHOLE: Final = 10_000
"""Fractions are counted in these parts, so that spreads are the same everywhere."""
LARGE, SHIFT = 1 << 44, 16
"""Beyond this a rough count is exact enough: parts of such an amount would be no int64."""
NOTHING_ASKED: Final = -1


def container(plan: Plan, work: Work, ask: int, mask: int) -> int:
    """The score of one container, 0 to 100; -1 if nothing that it asks for counts."""
    zones = mask if mask else plan.every
    count, first, second = 0, 0, 0
    for item in range(plan.memory[ask] - 1, plan.memory[ask + 1]):
        cpus = item < plan.memory[ask]
        place = 0 if cpus else plan.places_asked[item]
        need = plan.cpus[ask] if cpus else plan.amounts[item]
        if need == 0 or plan.weights[place] == 0 or work.domains[place] == 0:
            continue
        there = summed(work.allocatable, place, zones)
        if there <= 0:
            continue
        share, weight = counted(plan, place, max(0, summed(work.free, place, zones) - need), there)
        count += 1
        first += share
        second += weight
    return NOTHING_ASKED if count == 0 else combined(plan, zones, count, first, second)


def counted(plan: Plan, place: int, left: int, there: int) -> tuple[int, int]:
    """What one resource adds to the two sums that `combined` takes."""
    if plan.strategy == BALANCED:
        if there > LARGE:
            there >>= SHIFT
            left >>= SHIFT
        used = max(0, there - left) * WHOLE // there
        return used, used * used
    return percent(float(left), float(there)) * plan.weights[place], plan.weights[place]


def percent(left: float, there: float) -> int:
    """Up to 2^46 exact; beyond, as good as floats are, and the same everywhere."""
    return min(int(left * 100.0 / there), 100)


def combined(plan: Plan, zones: int, count: int, first: int, second: int) -> int:
    """From sums over resources to a score: of shares and weights, or of used parts and their squares."""
    if plan.strategy == LEAST:
        return quotient(first, second)
    if plan.strategy == MOST:
        return 100 - quotient(first, second)
    if plan.strategy == BALANCED:
        # Standard deviation of the used parts; the root is of a number far below 2^53, so its floor is exact.
        return 100 - int(math.sqrt(count * second - first * first)) // count // (WHOLE // 100)
    return 100 - PER_ZONE * (plan.count[zones] - 1)


def summed_up(total: int, count: int) -> int:
    """The pod's score from its containers'; a pod that asks for nothing is as good as can be anywhere."""
    return max(1, min(100, quotient(total, count))) if count else 100
