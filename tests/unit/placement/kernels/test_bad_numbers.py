"""Numbers that no node has: kernels answer something, the same everywhere, and never fail."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import ASK, UNFIT, RowBlock
from numalign.placement.kernels.plan import KINDS, Scoring
from numalign.placement.referenceargs import Strategy
from tests.conftest import require
from tests.unit.placement.kernels.blocks import (
    CPU,
    GPU,
    MEMORY,
    asks,
    block_of,
    blocks,
    empty,
    evaluated,
    node_rules,
    programs,
)

LARGEST = 1 << 52
RULES = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True)
ODD = [-LARGEST, -1, 0, 1, LARGEST]


@st.composite
def odd_questions(draw: st.DrawFn) -> tuple[RowBlock, Program]:
    rules = draw(node_rules())
    block = draw(blocks(rules))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    for numbers in (block.free, block.size, block.allocatable, block.homeless, block.full_core_cpus):
        odd = chance.random(numbers.shape) < 0.2
        numbers[odd] = chance.choice(ODD, int(odd.sum()))
    np.maximum(block.size, 0, out=block.size)
    np.minimum(block.free, block.size, out=block.free)
    return block, draw(programs(rules))


@given(odd_questions(), st.sampled_from(KINDS))
def test_odd_numbers_are_answered_alike(question: tuple[RowBlock, Program], strategy: Strategy) -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    from numalign.placement.kernels import compiled

    block, program = question
    rows = np.arange(len(block.busy), dtype=np.int32)
    plain = evaluated(scalar, block, rows, program, Scoring(strategy)).code_or_score.tolist()
    assert evaluated(compiled, block, rows, program, Scoring(strategy)).code_or_score.tolist() == plain
    assert set(plain) <= {ASK, UNFIT, *range(1, 101)}


def test_what_is_overdrawn_counts_as_nothing() -> None:
    overdrawn = block_of(RULES, {CPU: (-5, 4)}, size={CPU: (8, 8)})
    outcomes = evaluated(scalar, overdrawn, np.zeros(1, np.int32), asks(Ask(cpus=4)), Scoring())
    assert outcomes.masks.tolist() == [[0b10]]


@pytest.mark.parametrize(
    "ask", [Ask(cpus=1 << 70), Ask(memory=((MEMORY, 1 << 90),)), Ask(cpus=1, devices=((GPU, 1 << 80),))], ids=str
)
def test_requests_beyond_all_numbers_do_not_fit(ask: Ask) -> None:
    large = block_of(RULES, dict.fromkeys((CPU, MEMORY, GPU), (LARGEST, LARGEST)))
    assert evaluated(scalar, large, np.zeros(1, np.int32), asks(ask), Scoring()).code_or_score.tolist() == [UNFIT]


def test_a_node_without_zones_is_for_the_row_model() -> None:
    nothing = empty(NodeRules(zones=()), 3)
    outcomes = evaluated(scalar, nothing, np.arange(3, dtype=np.int32), asks(Ask(cpus=1)), Scoring())
    assert outcomes.code_or_score.tolist() == [ASK] * 3


def test_no_rows_no_answers() -> None:
    outcomes = evaluated(scalar, empty(RULES, 0), np.zeros(0, np.int32), asks(Ask(cpus=1)), Scoring())
    assert outcomes.masks.shape == (0, 1)


def test_programs_that_are_too_large_are_for_the_row_model() -> None:
    many = asks(*[Ask(cpus=1)] * 33)
    roomy = block_of(RULES, {CPU: (99, 99)})
    assert evaluated(scalar, roomy, np.zeros(1, np.int32), many, Scoring()).code_or_score.tolist() == [ASK]
