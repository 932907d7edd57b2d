"""How many pods of one shape a row admits, one after the other, by the rules of the row kernels.

`scalar` and `compiled` call `count` for rows whose totals have room. `align` and `allocate` decide about every pod and
charge it to the row's `Work`; the plan comes from `plan.counting`. A pod that takes the best zone with room leaves that
zone the best one as long as it has room, so its equals follow without being evaluated. Part of the row kernels: see
`work` for their language."""

from __future__ import annotations

from numalign.placement.kernels.admit import begin
from numalign.placement.kernels.allocate import FITS, allocate
from numalign.placement.kernels.block import ASK, NO_ROOM, UNFIT, Amounts
from numalign.placement.kernels.merge import PREFERRED, align
from numalign.placement.kernels.plan import KERNEL, REFUSED, ROW_MODEL, SINGLE, ZONES, Plan
from numalign.placement.kernels.work import Work

MasksByStep = list[int] | Amounts


def count(plan: Plan, work: Work, most: int, alone: MasksByStep, spread: Amounts) -> int:
    """Why no pod comes after those that were counted: `NO_ROOM` after `most`, else a code of `block`.

    `spread`: by zone, pods that have all they ask in it; then all others. `alone`: by step, the zones that every pod
    has to get, unless the first is negative; else the answer is `ASK`."""
    if plan.standing == ROW_MODEL:
        return ASK
    if plan.standing == REFUSED:
        return UNFIT
    if names_unknown_device(plan, work):
        return ASK
    simple = is_simple(plan, work)
    if simple and plan.in_one_zone and plan.policy == SINGLE and plan.steps == 2 and alone[0] < 0:
        return fill(plan, work, most, spread)
    begin(plan, work)
    placed = 0
    while placed < most:
        zones = admit_next(plan, work)
        if zones < 0:
            return zones
        if alone[0] >= 0 and (zones == 0 or not simple or not is_same(plan, work, alone)):
            return ASK
        again = repeated(plan, work, zones, most - placed - 1) if simple and zones > 0 else 0
        spread[lone_zone(plan, zones)] += 1 + again
        placed += 1 + again
    return NO_ROOM


def fill(plan: Plan, work: Work, most: int, spread: Amounts) -> int:
    """For a pod of one container, which one zone has to hold: zone after zone, the best one first."""
    placed = 0
    for rank in range(plan.zones):
        zone, room = plan.zone_order[rank], most - placed
        if plan.cpus[0] > 0:
            room = min(room, work.free[zone] // plan.cpus[0])
        for item in range(plan.memory[0], plan.memory[1]):
            if plan.amounts[item] > 0:
                room = min(room, work.free[plan.places_asked[item] * ZONES + zone] // plan.amounts[item])
        work.free[zone] -= room * plan.cpus[0]
        for item in range(plan.memory[0], plan.memory[1]):
            work.free[plan.places_asked[item] * ZONES + zone] -= room * plan.amounts[item]
        spread[zone] += room
        placed += room
    keep(plan, work)
    return NO_ROOM if placed == most else UNFIT


def first(plan: Plan, work: Work, alone: MasksByStep) -> int:
    """A code of `block` if the row admits no pod; else the zones of its containers are in `alone`."""
    if plan.standing != KERNEL:
        return ASK
    begin(plan, work)
    zones = admit_next(plan, work)
    for step in range(plan.steps - 1):
        alone[step] = work.masks[step]
    return zones


def asks_nothing(plan: Plan) -> bool:
    """Whether no manager has a say in where the pod is."""
    if plan.standing != KERNEL:
        return False
    for ask in range(plan.steps + plan.as_a_whole):
        if plan.cpus[ask] > 0 or plan.memory[ask] < plan.memory[ask + 1]:
            return False
    return True


def admit_next(plan: Plan, work: Work) -> int:
    """Admits one pod more. The zones that it has, where every container has a single one that all lists prefer, and 0
    where not; or a code of `block`."""
    keep(plan, work)
    alignment = align(plan, work, plan.steps) if plan.as_a_whole else 0
    if alignment < 0:
        return alignment
    zones, single = 0, 1
    for step in range(plan.steps - 1):
        if not plan.as_a_whole:
            alignment = align(plan, work, step)
            if alignment < 0:
                return alignment
        mask = alignment & (PREFERRED - 1)
        work.masks[step] = mask
        if plan.cpus[step] > 0 or plan.memory[step] < plan.memory[step + 1]:
            if plan.zones == 1:
                mask = 1
            single = single if alignment >= PREFERRED and plan.count[mask] == 1 else 0
            zones |= mask
        code = allocate(plan, work, step, alignment)
        if code != FITS:
            return code
    return zones if single else 0


def keep(plan: Plan, work: Work) -> None:
    """What is free, as the next pod finds it."""
    for place in range(plan.places):
        for zone in range(plan.zones):
            work.before[place * ZONES + zone] = work.free[place * ZONES + zone]


def names_unknown_device(plan: Plan, work: Work) -> bool:
    """Whether the row has nothing of some device, free or not: amounts do not tell a plugin that has lost all of its
    devices from one that was never there."""
    for step in range(plan.steps):
        for item in range(plan.devices[step], plan.memory[step + 1]):
            place = plan.places_asked[item]
            if work.domains[place] == 0 and work.homeless_size[place] == 0:
                return True
    return False


def is_simple(plan: Plan, work: Work) -> bool:
    """Whether zones with room decide everything: no device lies in no zone, and no memory belongs to a group."""
    if plan.plain == 0:
        return False
    for place in range(plan.places):
        if work.homeless_size[place] > 0:
            return False
    for zone in range(plan.zones):  # noqa: SIM110 (numba knows no generators)
        if work.cells[zone] != 1 << zone:
            return False
    return True


def repeated(plan: Plan, work: Work, zones: int, most: int) -> int:
    """How many more pods get what the last one got, up to `most`; they are charged. Where cores have to be whole, each
    pod is looked at."""
    again = most if plan.full_cores == 0 else 0
    for place in range(plan.places):
        for zone in range(plan.zones):
            at = place * ZONES + zone
            taken = work.before[at] - work.free[at]
            if taken > 0:
                again = min(again, work.free[at] // taken) if zones >> zone & 1 else 0
    for place in range(plan.places if again > 0 else 0):
        for zone in range(plan.zones):
            at = place * ZONES + zone
            taken = work.before[at] - work.free[at]
            work.free[at] -= again * taken
            work.before[at] = work.free[at] + taken
    return again


def is_same(plan: Plan, work: Work, alone: MasksByStep) -> bool:
    """Whether the last pod has just these zones."""
    for step in range(plan.steps - 1):  # noqa: SIM110 (numba knows no generators)
        if work.masks[step] != alone[step]:
            return False
    return True


def lone_zone(plan: Plan, zones: int) -> int:
    """The place of a pod in `spread`."""
    for zone in range(plan.zones):
        if zones == 1 << zone:
            return zone
    return ZONES
