"""The common case, fast: every container in a single zone, nothing handed on by init containers.

`walk.decide` tries this first. If one zone has room for every list, the lists agree on single zones by size too, and
the best mask is the first such zone (engine spec 4). What else may be is left to the general rules: the answer is then
`GENERAL`, and the row has to be loaded again. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Final

from numalign.placement.kernels.block import UNFIT
from numalign.placement.kernels.hints import ungrouped
from numalign.placement.kernels.plan import RESTRICTED, SINGLE, ZONES, Plan
from numalign.placement.kernels.scoring import container, summed_up
from numalign.placement.kernels.work import Work

GENERAL: Final = -9
ANYWHERE: Final = ZONES
"""Instead of a zone: nothing is asked for that lies in zones."""


def decide_simply(plan: Plan, work: Work) -> int:
    """The row's score, a code of `block`, or `GENERAL`."""
    zone = first_zone(plan, work, plan.steps) if plan.as_a_whole else ANYWHERE
    total, count, taken = 0, 0, 0
    for step in range(plan.steps):
        if not plan.as_a_whole:
            zone = first_zone(plan, work, step)
        if zone < 0:
            return zone
        work.masks[step] = stored(plan, zone)
        score = container(plan, work, step, work.masks[step])
        if score >= 0:
            total += score
            count += 1
        if plan.full_cores and plan.cpus[step] > 0:
            taken += plan.cpus[step]
            if plan.cpus[step] % plan.full_cores:
                return UNFIT
            if taken > work.full_core_cpus:
                return GENERAL
        code = take(plan, work, step, zone)
        if code != 0:
            return code
    return summed_up(total, count)


def stored(plan: Plan, zone: int) -> int:
    """The mask that the kubelet remembers: of a single zone policy, "any" where it is all or nothing is aligned."""
    if plan.policy == SINGLE:
        return 0 if zone == ANYWHERE or plan.zones == 1 else 1 << zone
    return plan.every if zone == ANYWHERE else 1 << zone


def first_zone(plan: Plan, work: Work, ask: int) -> int:
    if not in_zones(plan, work, ask):
        return ANYWHERE
    for rank in range(plan.zones):
        zone = plan.zone_order[rank]
        if holds(plan, work, ask, zone):
            return zone
    if not memory_counts(plan, work, ask):
        return GENERAL
    if plan.policy == SINGLE or (plan.policy == RESTRICTED and needs_one_zone(plan, work, ask)):
        return UNFIT
    return GENERAL


def in_zones(plan: Plan, work: Work, ask: int) -> bool:
    if plan.cpus[ask] > 0 or plan.memory[ask] < plan.devices[ask]:
        return True
    zones = 0
    for item in range(plan.devices[ask], plan.memory[ask + 1]):
        zones |= work.domains[plan.places_asked[item]]
    return zones != 0


def holds(plan: Plan, work: Work, ask: int, zone: int) -> bool:
    """Whether everything that lies in zones fits this one."""
    free = work.free
    if free[zone] < plan.cpus[ask]:
        return False
    if plan.memory[ask] < plan.devices[ask] and work.cells[zone] != 1 << zone:
        return False
    for item in range(plan.memory[ask], plan.memory[ask + 1]):
        place = plan.places_asked[item]
        # Amounts of devices are above zero here, so a zone without any is out already.
        if free[place * ZONES + zone] < plan.amounts[item] and (work.domains[place] or item < plan.devices[ask]):
            return False
    return True


def memory_counts(plan: Plan, work: Work, ask: int) -> bool:
    """Whether memory that has no room surely means no. What fits nowhere has no say in the merge, and may still be had:

    by a pod's containers one by one, or in a single zone of a group, which is not looked at (kubelet spec 6.4)."""
    if plan.memory[ask] == plan.devices[ask] or (not plan.as_a_whole and ungrouped(plan, work)):
        return True
    for zone in range(plan.zones):
        room = work.cells[zone] == 1 << zone
        for item in range(plan.memory[ask], plan.devices[ask]):
            room = room and work.free[plan.places_asked[item] * ZONES + zone] >= plan.amounts[item]
        if room:
            return True
    return False


def needs_one_zone(plan: Plan, work: Work, ask: int) -> bool:
    """Whether some list needs but one zone by size, so that no wider mask is preferred by all; groups aside."""
    if plan.memory[ask] < plan.devices[ask] and not ungrouped(plan, work):
        return False
    for zone in range(plan.zones):
        if plan.cpus[ask] > 0 and work.size[zone] >= plan.cpus[ask]:
            return True
        for item in range(plan.devices[ask], plan.memory[ask + 1]):
            if work.size[plan.places_asked[item] * ZONES + zone] >= plan.amounts[item]:
                return True
    return False


def take(plan: Plan, work: Work, step: int, zone: int) -> int:
    """Charge the zone; 0, or why not."""
    if zone == ANYWHERE:
        return take_homeless(plan, work, step)
    if plan.as_a_whole and not holds(plan, work, step, zone):
        return GENERAL
    if step + 1 == plan.steps:
        return take_homeless(plan, work, step)
    work.free[zone] -= plan.cpus[step]
    for item in range(plan.memory[step], plan.memory[step + 1]):
        place = plan.places_asked[item]
        if work.domains[place] or item < plan.devices[step]:
            work.free[place * ZONES + zone] -= plan.amounts[item]
    return take_homeless(plan, work, step)


def take_homeless(plan: Plan, work: Work, step: int) -> int:
    """Devices that no zone has, where a device plugin serves them at all."""
    for item in range(plan.devices[step], plan.memory[step + 1]):
        place = plan.places_asked[item]
        if work.domains[place] or work.homeless_size[place] == 0:
            continue
        work.homeless[place] -= plan.amounts[item]
        if work.homeless[place] < 0:
            return UNFIT
    return 0
