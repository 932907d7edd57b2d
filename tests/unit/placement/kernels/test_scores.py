"""Scores from 1 to 100 by strategy; what each of them counts."""

import numpy as np
import pytest

from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import RowBlock
from numalign.placement.kernels.plan import Scoring
from numalign.placement.referenceargs import Strategy
from tests.unit.placement.kernels.blocks import CPU, MEMORY, asks, block_of, evaluated

RULES = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True, static_memory=True)
HALF_USED = block_of(RULES, {CPU: (5, 10), MEMORY: (8, 10)}, size={CPU: (10, 10), MEMORY: (10, 10)})
BOTH = asks(Ask(cpus=3, memory=((MEMORY, 4),)))
"""Leaves 20 % of the CPUs and 40 % of the memory of zone 0."""

STRATEGIES: dict[str, tuple[Scoring, int]] = {
    "least allocated: the mean of what stays free": (Scoring(Strategy.LEAST_ALLOCATED), 30),
    "most allocated: what is missing to 100": (Scoring(Strategy.MOST_ALLOCATED), 70),
    "balanced: 100 less the spread of 80 % and 60 % used": (Scoring(Strategy.BALANCED_ALLOCATION), 90),
    "fewest zones: one zone is best": (Scoring(Strategy.LEAST_NUMA_NODES), 100),
    "weights": (Scoring(Strategy.LEAST_ALLOCATED, ((MEMORY, 3),)), 35),
    "a weight of nothing": (Scoring(Strategy.LEAST_ALLOCATED, ((MEMORY, 0),)), 20),
    "nothing counts: as good as can be": (Scoring(Strategy.MOST_ALLOCATED, ((CPU, 0), (MEMORY, 0))), 100),
}


def score(block: RowBlock, program: Program, scoring: Scoring) -> int:
    return int(evaluated(scalar, block, np.zeros(1, np.int32), program, scoring).code_or_score.item())


@pytest.mark.parametrize("scoring, expected", STRATEGIES.values(), ids=STRATEGIES)
def test_a_strategy_scores_what_the_zone_is_left_with(scoring: Scoring, expected: int) -> None:
    assert score(HALF_USED, BOTH, scoring) == expected


def test_the_pod_gets_the_mean_of_its_containers() -> None:
    one_by_one = asks(Ask(cpus=2), Ask(cpus=2), Ask())
    assert score(HALF_USED, one_by_one, Scoring()) == (30 + 10) // 2


def test_a_fitting_row_scores_at_least_one() -> None:
    assert score(block_of(RULES, {CPU: (4, 4)}), asks(Ask(cpus=4)), Scoring()) == 1


def test_without_alignment_all_zones_count() -> None:
    whole = block_of(NodeRules(zones=(0, 1), static_cpus=True), {CPU: (4, 6)}, size={CPU: (10, 10)})
    assert score(whole, asks(Ask(cpus=5)), Scoring()) == 25
    assert score(whole, asks(Ask(cpus=5)), Scoring(Strategy.LEAST_NUMA_NODES)) == 88


def test_a_pod_that_asks_for_nothing_scores_highest() -> None:
    assert score(HALF_USED, asks(Ask()), Scoring()) == 100
