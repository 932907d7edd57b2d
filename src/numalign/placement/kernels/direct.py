"""The most common case, faster still: every container in a zone that has room for all it asks.

`compiled` tries this first, because little of a row has to be loaded for it. The answer is that of `simple`, or
`GENERAL` wherever anything else could matter. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from numalign.placement.kernels.plan import ZONES, Plan
from numalign.placement.kernels.scoring import NOTHING_ASKED, combined, counted, summed_up
from numalign.placement.kernels.simple import ANYWHERE, GENERAL, stored
from numalign.placement.kernels.work import Work


def decide_directly(plan: Plan, work: Work) -> int:
    """The row's score, or `GENERAL`. Only `free`, `allocatable` and `cells` are looked at."""
    if not plan.plain or plan.as_a_whole or plan.full_cores:
        return GENERAL
    total, count = 0, 0
    for step in range(plan.steps):
        zone = ANYWHERE
        if plan.cpus[step] > 0 or plan.memory[step] < plan.devices[step]:
            zone = zone_with_room(plan, work, step)
        elif plan.memory[step] < plan.memory[step + 1]:
            # Whether devices lie in zones at all is not looked at here.
            return GENERAL
        if zone < 0:
            return GENERAL
        work.masks[step] = stored(plan, zone)
        if zone == ANYWHERE:
            continue
        score = score_and_take(plan, work, step, zone)
        if score >= 0:
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
    return GENERAL


def score_and_take(plan: Plan, work: Work, step: int, zone: int) -> int:
    """Twin of `scoring.container` for a single zone, which is charged on the way."""
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
