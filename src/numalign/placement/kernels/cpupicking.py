"""How the kubelet divides CPUs among several zones, from counts: exact while every core is whole (engine spec 5).

Whole zones and sockets first, then whole cores, then single CPUs; what has the fewest free CPUs comes first, and ids
decide among equals (kubelet spec 5.6). Part of the row kernels: see `work` for their language."""

from __future__ import annotations

from typing import Final

from numalign.placement.kernels.plan import Plan
from numalign.placement.kernels.work import Work

NO_ZONE: Final = -1
CPUS: Final = 0
"""The place of CPUs, and so where their zones start."""


def divide(plan: Plan, work: Work, zones: int, need: int) -> bool:
    """Take CPUs from these zones as the picker would; False, and nothing taken, where counts do not tell."""
    if not plan.countable or work.whole_cores == 0 or not even_sockets(plan, work):
        return False
    if plan.numa_first:
        need = take_full_zones(plan, work, zones, need)
    else:
        need = take_full_zones(plan, work, zones, take_full_sockets(plan, work, zones, need))
    need = take_in_order(plan, work, zones, need, plan.threads)
    if need > 0:
        take_in_order(plan, work, zones, need, 1)
        work.whole_cores = int(plan.threads == 1)
    return True


def even_sockets(plan: Plan, work: Work) -> bool:
    """Sockets are measured by their average size, which has to be everyone's (kubelet spec 4)."""
    first = NO_ZONE
    for zone in range(plan.zones):
        if work.size[zone] > 0:
            size = socket_sum(plan, work.size, plan.socket_of[zone], plan.every)
            if first == NO_ZONE:
                first = size
            if size != first:
                return False
    return True


def socket_sum(plan: Plan, amounts: list[int], socket: int, zones: int) -> int:
    total = 0
    for zone in range(plan.zones):
        if zones >> zone & 1 and plan.socket_of[zone] == socket:
            total += amounts[CPUS + zone]
    return total


def take_full_zones(plan: Plan, work: Work, zones: int, need: int) -> int:
    count = in_order(plan, work, zones)
    for number in range(count):
        zone = work.zones[number]
        if work.free[zone] == work.size[zone] and need >= work.size[zone]:
            need -= work.size[zone]
            work.free[zone] = 0
    return need


def take_full_sockets(plan: Plan, work: Work, zones: int, need: int) -> int:
    count = in_order(plan, work, zones)
    for number in range(count):
        socket = plan.socket_of[work.zones[number]]
        size = socket_sum(plan, work.size, socket, plan.every)
        if need < size or socket_sum(plan, work.free, socket, zones) < size:
            continue
        need -= size
        for zone in range(plan.zones):
            if plan.socket_of[zone] == socket:
                work.free[zone] = 0
    return need


def take_in_order(plan: Plan, work: Work, zones: int, need: int, unit: int) -> int:
    """As many cores of this many threads as each zone has."""
    count = in_order(plan, work, zones)
    for number in range(count):
        zone = work.zones[number]
        part = min(work.free[zone] // unit, need // unit) * unit
        work.free[zone] -= part
        need -= part
    return need


def in_order(plan: Plan, work: Work, zones: int) -> int:
    """List the zones with free CPUs as the picker goes through them; how many there are."""
    count = 0
    for zone in range(plan.zones):
        if not zones >> zone & 1 or work.free[zone] == 0:
            continue
        at = count
        while at > 0 and comes_before(plan, work, zones, zone, work.zones[at - 1]):
            work.zones[at] = work.zones[at - 1]
            at -= 1
        work.zones[at] = zone
        count += 1
    return count


def comes_before(plan: Plan, work: Work, zones: int, zone: int, other: int) -> bool:
    if not plan.numa_first and plan.socket_of[zone] != plan.socket_of[other]:
        mine = socket_sum(plan, work.free, plan.socket_of[zone], zones)
        its = socket_sum(plan, work.free, plan.socket_of[other], zones)
        return mine < its or (mine == its and plan.socket_of[zone] < plan.socket_of[other])
    # Zones are listed in ascending order, so that among equals the earlier one stays first.
    return work.free[zone] < work.free[other]
