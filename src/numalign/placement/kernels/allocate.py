"""What a container takes from a row once it is aligned: devices, CPUs, memory, in the kubelet's order (engine spec 5).

`allocate` charges the row's table and says whether the kubelet would have gone along: `FITS`, or a code of `block`.
Amounts whose zones counts cannot tell are drained in ascending order, so that sums stay true, and marked unknown for
later containers. Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Final

from numalign.placement.kernels.block import ASK, UNFIT
from numalign.placement.kernels.cpupicking import divide, even_sockets
from numalign.placement.kernels.hints import best_for_memory, coherent, fewest_for_memory, handed_on, has_room, summed
from numalign.placement.kernels.merge import PREFERRED
from numalign.placement.kernels.plan import ZONES, Plan
from numalign.placement.kernels.work import Work

FITS: Final = 0
MANY_ZONES: Final = 4
"""Zones up to which spreading CPUs over zones cannot go wrong by itself (kubelet spec 5.7, shared storage)."""


def allocate(plan: Plan, work: Work, step: int, alignment: int) -> int:
    mask = alignment & (PREFERRED - 1)
    for item in range(plan.devices[step], plan.memory[step + 1]):
        if not take_devices(plan, work, step, item, mask):
            return UNFIT
    if plan.cpus[step] > 0:
        taken = take_cpus(plan, work, step, mask)
        if taken != FITS:
            return taken
    if plan.memory[step] < plan.devices[step]:
        return take_memory(plan, work, step, alignment)
    return FITS


def is_last(plan: Plan, step: int) -> bool:
    """Whether no container follows, which would have to know what this one took."""
    return step + 1 == plan.steps


# Devices


def take_devices(plan: Plan, work: Work, step: int, item: int, mask: int) -> bool:
    place, need = plan.places_asked[item], plan.amounts[item]
    domain = work.domains[place]
    if domain == 0 and work.homeless_size[place] == 0:
        return True
    if need == 0:
        return work.homeless_size[place] > 0 or summed(work.allocatable, place, domain) > 0
    if summed(work.free, place, plan.every) + work.homeless[place] < need:
        return False
    if is_last(plan, step):
        return True
    aligned = mask if mask and domain else plan.every
    if plan.init[step]:
        keep_devices(plan, work, place, need, aligned)
        return True
    exact = drained_exactly(plan, work, place, aligned, need) and work.kept[place] & ~aligned == 0
    left = drain(plan, work, place, aligned, need)
    if left > 0:
        exact = exact and rest_is_exact(plan, work, place, plan.every & ~aligned, left)
        left = drain(plan, work, place, plan.every & ~aligned, left)
    work.homeless[place] -= left
    hand_on_devices(work, place, need)
    if not exact or (mask == 0 and work.homeless_size[place] > 0):
        work.unknown[place] = 1
    return True


def rest_is_exact(plan: Plan, work: Work, place: int, others: int, need: int) -> bool:
    """Beyond the aligned ones a plugin may prefer any device, with a zone or without (kubelet spec 7.3, step 8)."""
    kinds = plan.count[free_zones(plan, work, place, others)] + int(work.homeless[place] > 0)
    return kinds <= 1 or summed(work.free, place, others) + work.homeless[place] <= need


def keep_devices(plan: Plan, work: Work, place: int, need: int, aligned: int) -> None:
    """An init container's devices stay free for its pod, which takes them first (kubelet spec 7.3)."""
    with_some = free_zones(plan, work, place, aligned)
    if plan.count[with_some] != 1 or summed(work.free, place, aligned) < need:
        work.unknown[place] = 1
        return
    fresh = max(0, need - work.kept_low[place])
    work.kept[place] = with_some
    work.kept_low[place] += fresh
    work.kept_high[place] = work.kept_low[place]


def hand_on_devices(work: Work, place: int, need: int) -> None:
    left = max(0, work.kept_low[place] - need)
    work.kept_low[place], work.kept_high[place] = left, left
    if left == 0:
        work.kept[place] = 0


def free_zones(plan: Plan, work: Work, place: int, mask: int) -> int:
    found = 0
    for zone in range(plan.zones):
        if mask >> zone & 1 and work.free[place * ZONES + zone] > 0:
            found |= 1 << zone
    return found


def drained_exactly(plan: Plan, work: Work, place: int, mask: int, need: int) -> bool:
    """Whether counts tell what a zone has left: one zone to take from, or everything taken."""
    return plan.count[free_zones(plan, work, place, mask)] <= 1 or summed(work.free, place, mask) <= need


def drain(plan: Plan, work: Work, place: int, mask: int, need: int) -> int:
    """Take from these zones, the lowest first; what they do not have is given back."""
    for zone in range(plan.zones):
        if mask >> zone & 1:
            part = min(need, work.free[place * ZONES + zone])
            work.free[place * ZONES + zone] -= part
            need -= part
    return need


# CPUs


def take_cpus(plan: Plan, work: Work, step: int, mask: int) -> int:
    need = plan.cpus[step]
    total = summed(work.free, 0, plan.every)
    area = plan.area[mask] if mask else plan.every
    if plan.full_cores and need % plan.full_cores:
        return UNFIT
    if total < need:
        return ASK if work.overstated or may_overstate(plan, work, area & work.domains[0]) else UNFIT
    if plan.full_cores:
        enough = whole_cores_left(plan, work, need)
        if enough != FITS:
            return enough
    if plan.spread_over_zones and may_go_wrong(plan, work, area, need):
        return ASK
    if is_last(plan, step):
        return FITS
    count_taken(work, need, total)
    if plan.init[step]:
        keep_cpus(plan, work, need, area, total)
    else:
        hand_on_cpus(work, need, total)
        draw_cpus(plan, work, step, area)
    return FITS


def may_overstate(plan: Plan, work: Work, area: int) -> bool:
    """A socket that is full by the average is taken with CPUs that are not free (kubelet spec 4), so fewer may do."""
    return plan.count[area] > 1 and area != work.domains[0] and not even_sockets(plan, work)


def whole_cores_left(plan: Plan, work: Work, need: int) -> int:
    """`full-pcpus-only`: free CPUs on cores without a reserved one, those kept for the pod itself not counted."""
    if work.full_core_cpus < 0:
        return ASK
    if need <= work.full_core_cpus - work.most_taken:
        return FITS
    # Of what was taken, this many at most came from cores with a reserved CPU.
    least = max(0, work.least_taken - work.lone_cpus)
    # Sockets of different sizes are taken with CPUs that are not free, so that more may be left.
    return UNFIT if need > work.full_core_cpus - least and even_sockets(plan, work) else ASK


def may_go_wrong(plan: Plan, work: Work, area: int, need: int) -> bool:
    """Spreading over zones can hang or miscount (kubelet spec 5.7); never within one zone, nor with whole cores."""
    sound = plan.zones <= MANY_ZONES and (plan.full_cores <= 1 or work.whole_cores != 0)
    if sound:
        return False
    inside = summed(work.free, 0, area)
    if plan.count[free_zones(plan, work, 0, area)] > 1:
        return True
    return inside < need and plan.count[free_zones(plan, work, 0, plan.every & ~area)] > 1


def count_taken(work: Work, need: int, total: int) -> None:
    """How many CPUs leave the shared set: all but those that were kept for the pod."""
    low, high = work.kept_low[0], work.kept_high[0]
    work.least_taken += need - min(need, high)
    work.most_taken += min(need, total - low)


def keep_cpus(plan: Plan, work: Work, need: int, area: int, total: int) -> None:
    """An init container's CPUs stay free for its pod, though it may be given others (engine spec R4)."""
    with_some = free_zones(plan, work, 0, area)
    if plan.count[with_some] != 1 or summed(work.free, 0, area) < need:
        work.unknown[0] = 1
    work.kept[0] |= with_some
    work.kept_low[0] = max(work.kept_low[0], need)
    work.kept_high[0] = min(work.kept_high[0] + need, total)


def hand_on_cpus(work: Work, need: int, total: int) -> None:
    work.kept_low[0] = max(0, work.kept_low[0] - need)
    work.kept_high[0] = min(work.kept_high[0], total - need)
    if work.kept_high[0] == 0:
        work.kept[0] = 0


def draw_cpus(plan: Plan, work: Work, step: int, area: int) -> None:
    """Two runs of the picker: from the zones aligned to, then from all others."""
    need = plan.cpus[step]
    for run in (area, plan.every & ~area):
        part = min(need, summed(work.free, 0, run))
        if part == 0:
            continue
        need -= part
        with_some = free_zones(plan, work, 0, run)
        if drained_exactly(plan, work, 0, run, part):
            drain(plan, work, 0, run, part)
        elif work.kept_high[0] > 0 or not plan.cpus_later[step] or not divide(plan, work, run, part):
            drain(plan, work, 0, run, part)
            work.unknown[0] = 1
        if plan.count[with_some] > 1 and not even_sockets(plan, work):
            work.overstated = 1


# Memory


def take_memory(plan: Plan, work: Work, step: int, alignment: int) -> int:
    mask = memory_zones(plan, work, step, alignment)
    if mask == 0:
        return UNFIT
    if is_last(plan, step):
        return FITS
    for item in range(plan.memory[step], plan.devices[step]):
        place, need = plan.places_asked[item], plan.amounts[item]
        drain(plan, work, place, mask, need - min(need, handed_on(plan, work, mask, place)))
    for zone in range(plan.zones):
        if mask >> zone & 1:
            work.cells[zone] = mask
    work.busy |= mask
    hand_on_memory(plan, work, step, mask)
    return FITS


def memory_zones(plan: Plan, work: Work, step: int, alignment: int) -> int:
    """From the alignment to the zones that hold the memory (kubelet spec 6.4, steps 2 to 4); 0: refused."""
    mask, preferred = alignment & (PREFERRED - 1), alignment >= PREFERRED
    if mask == 0:
        mask = best_for_memory(plan, work, step, 0)
        if mask == 0 or (preferred and plan.count[mask] != fewest_for_memory(plan, work, step)):
            return 0
        preferred = plan.count[mask] == fewest_for_memory(plan, work, step)
    if not has_room(plan, work, step, mask):
        mask = best_for_memory(plan, work, step, mask)
        if mask == 0 or (preferred and plan.count[mask] != fewest_for_memory(plan, work, step)):
            return 0
    return 0 if plan.count[mask] > 1 and not coherent(plan, work, mask) else mask


def hand_on_memory(plan: Plan, work: Work, step: int, mask: int) -> None:
    """Kubelet spec 6.5: an init container leaves its amount to the next one with exactly these zones."""
    slot = 0
    while slot < work.slots and work.slot_masks[slot] != mask:
        slot += 1
    if slot == work.slots:
        if not plan.init[step]:
            return
        work.slots += 1
        work.slot_masks[slot] = mask
        for place in range(plan.places):
            work.slot_amounts[slot * plan.places + place] = 0
    for item in range(plan.memory[step], plan.devices[step]):
        at = slot * plan.places + plan.places_asked[item]
        before, size = work.slot_amounts[at], plan.amounts[item]
        work.slot_amounts[at] = max(before, size) if plan.init[step] else max(0, before - size)
