"""A program's way through one row: align, score and charge container by container (engine spec 6).

`scalar` calls `decide` for single rows, `compiled` compiles it. The masks end up in the row's `Work`. Part of the row
kernels: see `work` for their language."""

from __future__ import annotations

from numalign.placement.kernels.allocate import FITS, allocate
from numalign.placement.kernels.block import ASK, UNFIT
from numalign.placement.kernels.hints import summed
from numalign.placement.kernels.merge import PREFERRED, align
from numalign.placement.kernels.plan import REFUSED, ROW_MODEL, Plan
from numalign.placement.kernels.scoring import container, summed_up
from numalign.placement.kernels.work import Work


def decide(plan: Plan, work: Work) -> int:
    """The row's score, or a code of `block`."""
    if plan.standing == ROW_MODEL:
        return ASK
    if plan.standing == REFUSED:
        return UNFIT
    begin(plan, work)
    alignment = align(plan, work, plan.steps) if plan.as_a_whole else 0
    if alignment < 0:
        return alignment
    total, count = 0, 0
    for step in range(plan.steps):
        if not plan.as_a_whole:
            alignment = align(plan, work, step)
            if alignment < 0:
                return alignment
        mask = alignment & (PREFERRED - 1)
        work.masks[step] = mask
        score = container(plan, work, step, mask)
        if score >= 0:
            total += score
            count += 1
        code = allocate(plan, work, step, alignment)
        if code != FITS:
            return code
    return summed_up(total, count)


def begin(plan: Plan, work: Work) -> None:
    """Nothing taken yet. What is negative counts as nothing: pods hold more than the node has."""
    for place in range(plan.places):
        work.unknown[place], work.kept[place], work.kept_low[place], work.kept_high[place] = 0, 0, 0, 0
    work.slots, work.least_taken, work.most_taken, work.overstated = 0, 0, 0, 0
    work.lone_cpus = max(0, summed(work.free, 0, plan.every) - work.full_core_cpus)
    for step in range(plan.steps):
        work.masks[step] = 0
