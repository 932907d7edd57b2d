"""The mask that a container, or a pod as a whole, is aligned to on one row (engine spec 4).

`align` gives an `Alignment` as a number: the mask, with `PREFERRED` added where every list prefers it; a mask of 0
means any zone. Negative numbers are codes of `block`. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Final

from numalign.placement.kernels.block import ASK, UNFIT
from numalign.placement.kernels.hints import (
    fewest_by_size,
    fewest_for_memory,
    fewest_free,
    gather,
    in_memory_list,
    summed,
    ungrouped,
)
from numalign.placement.kernels.plan import BEST_EFFORT, NONE, SINGLE, ZONES, Plan
from numalign.placement.kernels.work import Work

PREFERRED: Final = 1 << ZONES
UNEQUAL: Final = -1
ANY_SIZE: Final = 0


def align(plan: Plan, work: Work, ask: int) -> int:
    if plan.policy == NONE:
        return 0
    found = aligned(plan, work, ask)
    if plan.cpus[ask] == 0 or work.kept_high[0] == 0 or work.kept_low[0] > 0:
        return found
    # Whether anything is left of an init container's CPUs is not known: both have to come to the same.
    kept, work.kept[0] = work.kept[0], 0
    without = aligned(plan, work, ask)
    work.kept[0] = kept
    return found if found == without else ASK


def aligned(plan: Plan, work: Work, ask: int) -> int:
    if not gather(plan, work, ask):
        return ASK
    found = merged(plan, work, ask)
    if found >= PREFERRED or work.memory_types == 0:
        return found if found else closest(plan, work)
    alone = not plan.as_a_whole and ungrouped(plan, work)
    if alone and plan.policy != BEST_EFFORT:
        return UNFIT
    if not offer_memory(plan, work, ask):
        # Memory that fits nowhere has no say here. When it is allocated it fails, unless its containers ask for less
        # than their pod, or the only zone it is aligned to belongs to a group, which is not looked at (6.3, 6.4).
        if alone:
            return UNFIT
        work.memory_types = 0
        found = merged(plan, work, ask)
    return found if found else closest(plan, work)


def merged(plan: Plan, work: Work, ask: int) -> int:
    """The mask that all lists prefer, `UNFIT` where the policy requires one, else 0."""
    if plan.policy == SINGLE:
        return single_numa_node(plan, work, ask)
    if plan.policy == BEST_EFFORT:
        return best_effort(plan, work, ask)
    return restricted(plan, work, ask)


def best_effort(plan: Plan, work: Work, ask: int) -> int:
    """The best preferred mask; 0: `closest` finds one that is not preferred."""
    best = preferred(plan, work, ask)
    return best + PREFERRED if best else 0


def restricted(plan: Plan, work: Work, ask: int) -> int:
    """The best preferred mask, or none at all."""
    best = preferred(plan, work, ask)
    return best + PREFERRED if best else UNFIT


def single_numa_node(plan: Plan, work: Work, ask: int) -> int:
    """The first zone that every list offers."""
    if work.unsatisfiable:
        return UNFIT
    if work.lists == 0 and work.memory_types == 0:
        return PREFERRED
    for zone in range(plan.zones):
        if suits(plan, work, ask, 1 << zone):
            # A single zone that is the whole machine is stored as "any zone" (kubelet spec 3.5).
            return PREFERRED + (0 if plan.zones == 1 else 1 << zone)
    return UNFIT


def suits(plan: Plan, work: Work, ask: int, mask: int) -> bool:
    """Whether every list offers this mask."""
    for number in range(work.lists):
        place = work.list_places[number]
        if mask & ~work.list_domains[number] or work.kept[place] & ~mask:
            return False
        if summed(work.free, place, mask) < work.list_needs[number]:
            return False
    return work.memory_types == 0 or in_memory_list(plan, work, ask, mask)


def preferred(plan: Plan, work: Work, ask: int) -> int:
    """The best mask that every list prefers; 0: none."""
    if work.unsatisfiable:
        return 0
    if work.lists == 0 and work.memory_types == 0:
        return plan.every
    size = common_size(plan, work, ask)
    if size == UNEQUAL:
        return 0
    first, last = plan.starts[size], plan.starts[size + 1]
    if size == ANY_SIZE:
        first, last = 0, plan.every
    by_socket = plan.zones_per_socket > 0 and plan.cpus[ask] > 0
    smallest = fewest_by_size(plan, work, 0) if by_socket else 0
    for rank in range(first, last):
        mask = plan.ranked[rank]
        if by_socket and not cpus_prefer(plan, mask, smallest):
            continue
        if suits(plan, work, ask, mask):
            return mask
    return 0


def common_size(plan: Plan, work: Work, ask: int) -> int:
    """The number of zones that all lists need by size; with `align-by-socket` CPUs do not insist on theirs."""
    size = fewest_for_memory(plan, work, ask) if work.memory_types else ANY_SIZE
    by_socket = plan.zones_per_socket > 0 and plan.cpus[ask] > 0
    for number in range(1 if by_socket else 0, work.lists):
        needed = fewest_by_size(plan, work, number)
        if size != ANY_SIZE and size != needed:
            return UNEQUAL
        size = needed
    return size


def cpus_prefer(plan: Plan, mask: int, smallest: int) -> bool:
    """Kubelet spec 5.5: as few zones, or as few sockets, as the request needs."""
    sockets = -(-smallest // plan.zones_per_socket)
    return plan.count[mask] == smallest or plan.sockets[mask] == sockets


# Best effort without a preferred mask


def closest(plan: Plan, work: Work) -> int:
    """The first mask that the lists can come to, sizes tried from the widest of their narrowest masks."""
    wanted = narrowest_member(plan, work) if work.memory_types else 0
    common = plan.every
    for number in range(work.lists):
        wanted = max(wanted, fewest_free(plan, work, number))
        common &= work.list_domains[number]
    closed = work.memory_types < 2
    for step in range(plan.zones):
        size = wanted - step if step < wanted else step + 1
        for rank in range(plan.starts[size], plan.starts[size + 1]):
            mask = plan.ranked[rank]
            if mask & ~common:
                continue
            if reachable(plan, work, mask, common):
                return mask
            if not closed:
                # Every type of memory has a list of its own; that is worked out only where one is not enough.
                close_under_intersection(plan, work.members, work.memory_types)
                closed = True
                if reachable(plan, work, mask, common):
                    return mask
    return plan.every


def offer_memory(plan: Plan, work: Work, ask: int) -> bool:
    """Mark the masks that memory offers; whether there are any."""
    members = work.members
    members[0] = 0
    for mask in range(1, plan.every + 1):
        members[mask] = 1
    for item in range(plan.memory[ask], plan.devices[ask]):
        mark_short(plan, work, plan.places_asked[item], plan.amounts[item])
    for slot in range(work.slots):
        members[work.slot_masks[slot]] = 1
    restrained = work.busy != 0 or work.slots > 0 or not ungrouped(plan, work)
    found = False
    for mask in range(1, plan.every + 1):
        if members[mask] and restrained:
            members[mask] = int(in_memory_list(plan, work, ask, mask))
        found = found or members[mask] > 0
    return found


def mark_short(plan: Plan, work: Work, place: int, need: int) -> None:
    """Take out the masks that do not have enough free; sums grow zone by zone."""
    sums = work.sums
    sums[0] = 0
    for zone in range(plan.zones):
        first = 1 << zone
        for mask in range(first):
            total = sums[mask] + work.free[place * ZONES + zone]
            sums[first + mask] = total
            if total < need:
                work.members[first + mask] = 0


def narrowest_member(plan: Plan, work: Work) -> int:
    for rank in range(plan.every):
        if work.members[plan.narrowest[rank]]:
            return plan.count[plan.narrowest[rank]]
    return 0


def close_under_intersection(plan: Plan, members: list[int], times: int) -> None:
    """Every type has a list of its own: count supersets, raise to the number of lists, and take differences."""
    for zone in range(plan.zones):
        for mask in range(plan.every + 1):
            if not mask >> zone & 1:
                members[mask] += members[mask | 1 << zone]
    for mask in range(plan.every + 1):
        once = members[mask]
        for _ in range(times - 1):
            # Only whether it is more than none counts, and a product of two stays far below 2^63.
            members[mask] *= once
    for zone in range(plan.zones):
        for mask in range(plan.every + 1):
            if not mask >> zone & 1:
                members[mask] -= members[mask | 1 << zone]


def reachable(plan: Plan, work: Work, mask: int, common: int) -> bool:
    """Whether the mask is the intersection of one offered mask from each list."""
    if work.memory_types == 0:
        return can_be_dropped(plan, work, common & ~mask)
    rest = plan.every & ~mask
    more = 0
    while True:
        if work.members[mask | more] and can_be_dropped(plan, work, common & more):
            return True
        if more == rest:
            return False
        more = (more - rest) & rest


def can_be_dropped(plan: Plan, work: Work, dropped: int) -> bool:
    """Whether each zone can be left out by some list that has slack for it: engine spec 4, by backtracking."""
    lists = work.lists
    count = 0
    for zone in range(plan.zones):
        if dropped >> zone & 1:
            work.zones[count] = zone
            count += 1
    depth = 0
    work.choices[0] = -1
    while depth >= 0:
        if depth == count:
            restore(work, count)
            return True
        zone, number = work.zones[depth], work.choices[depth]
        if number >= 0:
            work.list_slacks[number] += work.free[work.list_places[number] * ZONES + zone]
        number += 1
        while number < lists and not spares(work, number, zone):
            number += 1
        if number < lists:
            work.list_slacks[number] -= work.free[work.list_places[number] * ZONES + zone]
            work.choices[depth] = number
            depth += 1
            work.choices[depth] = -1
        else:
            depth -= 1
    return False


def spares(work: Work, number: int, zone: int) -> bool:
    place = work.list_places[number]
    if work.kept[place] >> zone & 1:
        return False
    return work.free[place * ZONES + zone] <= work.list_slacks[number]


def restore(work: Work, count: int) -> None:
    for depth in range(count):
        number = work.choices[depth]
        work.list_slacks[number] += work.free[work.list_places[number] * ZONES + work.zones[depth]]
