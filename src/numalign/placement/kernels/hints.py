"""What each resource contributes to a merge on one row, and how many zones it needs by size (engine spec 3).

A list is a place with a need and a domain. Memory types form one list together, kept apart because groups decide about
it too: `in_memory_list` answers for a mask. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from numalign.placement.kernels.plan import ZONES, Plan
from numalign.placement.kernels.work import Work


def gather(plan: Plan, work: Work, ask: int) -> bool:
    """Write down the lists of an ask; False where counts no longer tell what a zone has."""
    work.lists = 0
    work.unsatisfiable = 0
    work.memory_types = plan.devices[ask] - plan.memory[ask]
    if plan.cpus[ask] > 0:
        if work.unknown[0]:
            return False
        add(plan, work, 0, plan.cpus[ask], work.domains[0])
    for item in range(plan.devices[ask], plan.memory[ask + 1]):
        place = plan.places_asked[item]
        domain = work.domains[place]
        if domain == 0:
            continue
        if work.unknown[place]:
            return False
        add(plan, work, place, plan.amounts[item], domain if plan.device_zones_only else plan.every)
    return True


def add(plan: Plan, work: Work, place: int, need: int, domain: int) -> None:
    """One list, unless nothing that is free in its domain suffices: then no combination is preferred."""
    slack = summed(work.free, place, domain) - need
    if slack < 0:
        work.unsatisfiable = 1
        return
    number = work.lists
    work.list_places[number] = place
    work.list_needs[number] = need
    work.list_domains[number] = domain
    work.list_slacks[number] = slack
    work.lists = number + 1


def summed(amounts: list[int], place: int, mask: int) -> int:
    total = 0
    first = place * ZONES
    while mask:
        if mask & 1:
            total += amounts[first]
        mask >>= 1
        first += 1
    return total


def fewest(plan: Plan, amounts: list[int], place: int, domain: int, need: int) -> int:
    """How many zones of a domain reach a need, the largest taken first; all of them where it is out of reach."""
    count = 0
    while domain and (need > 0 or count == 0):
        best = -1
        for zone in range(plan.zones):
            if domain >> zone & 1 and (best < 0 or amounts[place * ZONES + zone] > amounts[place * ZONES + best]):
                best = zone
        need -= amounts[place * ZONES + best]
        domain &= ~(1 << best)
        count += 1
    return count


def fewest_by_size(plan: Plan, work: Work, number: int) -> int:
    """How many zones a list needs, were they empty: what makes a mask preferred."""
    return fewest(plan, work.size, work.list_places[number], work.list_domains[number], work.list_needs[number])


def fewest_free(plan: Plan, work: Work, number: int) -> int:
    """The narrowest mask that a list offers; a mask has to hold the zones that are kept."""
    place, domain, need = work.list_places[number], work.list_domains[number], work.list_needs[number]
    kept = work.kept[place]
    need -= summed(work.free, place, kept)
    if kept and need <= 0:
        return plan.count[kept]
    return plan.count[kept] + fewest(plan, work.free, place, domain & ~kept, need)


# Memory


def fewest_for_memory(plan: Plan, work: Work, ask: int) -> int:
    """How many zones are large enough for all types at once, were they empty."""
    least = 1
    for item in range(plan.memory[ask], plan.devices[ask]):
        needed = fewest(plan, work.size, plan.places_asked[item], plan.every, plan.amounts[item])
        least = max(least, needed)
    if plan.devices[ask] - plan.memory[ask] == 1:
        return least
    for rank in range(plan.starts[least], plan.every):
        if large_enough(plan, work, ask, plan.narrowest[rank]):
            return plan.count[plan.narrowest[rank]]
    return plan.zones


def large_enough(plan: Plan, work: Work, ask: int, mask: int) -> bool:
    for item in range(plan.memory[ask], plan.devices[ask]):
        if summed(work.size, plan.places_asked[item], mask) < plan.amounts[item]:
            return False
    return True


def has_room(plan: Plan, work: Work, ask: int, mask: int) -> bool:
    """Whether enough is free, what init containers hand on not counted."""
    for item in range(plan.memory[ask], plan.devices[ask]):
        if summed(work.free, plan.places_asked[item], mask) < plan.amounts[item]:
            return False
    return True


def permitted(plan: Plan, work: Work, mask: int) -> bool:
    """A single zone must not be in a group; of several zones each busy one must be in exactly this group."""
    if plan.count[mask] > 1:
        return coherent(plan, work, mask)
    for zone in range(plan.zones):
        if mask >> zone & 1:
            return work.cells[zone] == mask
    return False


def coherent(plan: Plan, work: Work, mask: int) -> bool:
    busy = mask & work.busy
    differing = 0
    for zone in range(plan.zones):
        if busy >> zone & 1:
            differing |= work.cells[zone] ^ mask
    return differing == 0


def in_memory_list(plan: Plan, work: Work, ask: int, mask: int) -> bool:
    """Whether the memory manager offers a mask (kubelet spec 6.3)."""
    if not permitted(plan, work, mask) or not large_enough(plan, work, ask, mask):
        return False
    for item in range(plan.memory[ask], plan.devices[ask]):
        place = plan.places_asked[item]
        free = summed(work.free, place, mask) + handed_on(plan, work, mask, place)
        if free < plan.amounts[item]:
            return False
    return True


def ungrouped(plan: Plan, work: Work) -> bool:
    """Whether every zone's memory stands for itself."""
    differing = 0
    for zone in range(plan.zones):
        differing |= work.cells[zone] ^ 1 << zone
    return differing == 0


def handed_on(plan: Plan, work: Work, mask: int, place: int) -> int:
    for slot in range(work.slots):
        if work.slot_masks[slot] == mask:
            return work.slot_amounts[slot * plan.places + place]
    return 0


def best_for_memory(plan: Plan, work: Work, ask: int, including: int) -> int:
    """The memory manager's own choice among masks with these zones: the narrowest is preferred if any is; 0: none."""
    for rank in range(plan.every):
        mask = plan.narrowest[rank]
        if mask & including == including and in_memory_list(plan, work, ask, mask):
            return mask
    return 0
