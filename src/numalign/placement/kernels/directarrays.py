"""The most common case for all rows at once: twin of `direct` for `arrays`.

All resources lie in one array, so that few steps of NumPy do. Rows where any container finds no zone with room for all
it asks stay `GENERAL`."""

from __future__ import annotations

import numpy as np

from numalign.placement.kernels.block import Outcomes, RowBlock, Rows
from numalign.placement.kernels.plans import SINGLE, Plan
from numalign.placement.kernels.tables import Numbers, Truths, neighbours
from numalign.placement.kernels.tally import Sums, mean


def suits(plan: Plan, width: int) -> bool:
    """Whether zones with room say everything: no device stands alone, which could lie in no zone."""
    if not plan.plain or plan.as_a_whole or plan.full_cores or max(plan.columns) >= width:
        return False
    return all(
        plan.cpus[step] or plan.memory[step] < plan.devices[step] or plan.memory[step] == plan.memory[step + 1]
        for step in range(plan.steps)
    )


def decide(block: RowBlock, rows: Rows, plan: Plan, outcomes: Outcomes) -> None:
    where, zones_there, each = neighbours(rows), np.array(plan.zone_order), np.arange(len(rows))
    free = np.maximum(block.free[where, : plan.zones][:, :, plan.columns], 0)
    ungrouped = block.cells[where, : plan.zones] == 1 << np.arange(plan.zones)
    found: Truths = np.ones(len(rows), np.bool_)
    total, count = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for step in range(plan.steps):
        need = _need(plan, step)
        if not need.any():
            outcomes.masks[:, step] = 0 if plan.policy == SINGLE else plan.every
            continue
        fits: Truths = np.asarray((free >= need).all(axis=2))
        if plan.memory[step] < plan.devices[step]:
            fits &= ungrouped
        ranked = fits[:, zones_there]
        first = ranked.argmax(axis=1)
        zones = zones_there[first]
        found &= ranked[each, first]
        outcomes.masks[:, step] = 0 if plan.policy == SINGLE and plan.zones == 1 else 1 << zones
        sums = Sums(plan, len(rows))
        there = block.allocatable[rows, zones][:, plan.columns]
        sums.add_all(free[each, zones] - need, there, need > 0)
        total += np.where(sums.count > 0, sums.combined(1), 0)
        count += sums.count > 0
        free[each, zones] -= need
    outcomes.code_or_score[found] = mean(total, count)[found]
    outcomes.masks[~found] = 0


def _need(plan: Plan, step: int) -> Numbers:
    """By place."""
    need = np.zeros(plan.places, np.int64)
    need[0] = plan.cpus[step]
    for item in range(plan.memory[step], plan.memory[step + 1]):
        need[plan.places_asked[item]] += plan.amounts[item]
    return need
