"""The most common case, fast: every container in the best zone that has room for all it asks.

If one zone has room for everything, all lists agree on single zones, and the kubelet takes the best such zone under
every policy that aligns (engine spec 4). `scalar` and `compiled` try this before `admit`, because little of a row has
to be loaded for it. It never refuses a row: wherever anything else could matter, the answer is `UNDECIDED`. Part of
the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Final

from numalign.placement.kernels.plan import SINGLE, ZONES, Plan
from numalign.placement.kernels.scoring import NOTHING_ASKED, combined, counted, summed_up
from numalign.placement.kernels.work import Work

UNDECIDED: Final = -9
NO_ZONE: Final = -1


def decide(plan: Plan, work: Work) -> int:
    """The row's score, or `UNDECIDED`. Reads `free`, `allocatable` and `cells` only; for plans of `in_one_zone`."""
    total, count = 0, 0
    for step in range(plan.steps):
        if plan.cpus[step] == 0 and plan.memory[step] == plan.memory[step + 1]:
            work.masks[step] = 0 if plan.policy == SINGLE else plan.every
            continue
        zone = zone_with_room(plan, work, step)
        if zone == NO_ZONE:
            return UNDECIDED
        work.masks[step] = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << zone
        score = score_and_take(plan, work, step, zone)
        if score != NOTHING_ASKED:
            total += score
            count += 1
    return summed_up(total, count)


def zone_with_room(plan: Plan, work: Work, step: int) -> int:
    """The best zone that holds everything. A device that lies in no zone has room in none, so one is never missed."""
    for rank in range(plan.zones):
        zone = plan.zone_order[rank]
        room = work.free[zone] >= plan.cpus[step]
        if plan.memory[step] < plan.devices[step] and work.cells[zone] != 1 << zone:
            room = False
        for item in range(plan.memory[step], plan.memory[step + 1]):
            if work.free[plan.places_asked[item] * ZONES + zone] < plan.amounts[item]:
                room = False
                break
        if room:
            return zone
    return NO_ZONE


def score_and_take(plan: Plan, work: Work, step: int, zone: int) -> int:
    """`scoring.container` for a single zone, which is charged on the way."""
    count, first, second = 0, 0, 0
    for item in range(plan.memory[step] - 1, plan.memory[step + 1]):
        cpus = item < plan.memory[step]
        place = 0 if cpus else plan.places_asked[item]
        need = plan.cpus[step] if cpus else plan.amounts[item]
        there = work.allocatable[place * ZONES + zone]
        if need > 0 and plan.weights[place] != 0 and there > 0:
            share, weight = counted(plan, place, max(0, work.free[place * ZONES + zone] - need), there)
            count += 1
            first += share
            second += weight
        work.free[place * ZONES + zone] -= need
    return NOTHING_ASKED if count == 0 else combined(plan, 1 << zone, count, first, second)
