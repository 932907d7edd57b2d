"""A survey of all rows says what their evaluation says, and hands back what it does not decide."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from numalign.placement.columns.columns import VACANT
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.kernels import Kernel, arrays, plan, scalar, stackedarrays, wholly
from numalign.placement.kernels.block import ABREAST, NO_ROOM, Lanes, Nodes, Outcomes, RowBlock, lanes
from numalign.placement.kernels.strategies import Scoring
from tests.campaigns import holds_for
from tests.conftest import require
from tests.unit.placement.kernels.blocks import CPU, GPU, asks, block_of, questions, scorings

Survey = Callable[[Nodes], tuple[list[int], list[int], list[int]]]
KIND = 3
UNTOUCHED = 77
RULES = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True)
ONE_CPU = asks(Ask(cpus=1))
ROOMY = block_of(RULES, {CPU: (8, 8)})
WIDTH = ROOMY.free.shape[2]


def room_for(rows: int) -> int:
    return -(-rows // ABREAST) * ABREAST


def nodes_of(rows: int, width: int, *, amounts: tuple[int, ...] = ()) -> Nodes:
    """Rows of the kind that is asked, with ten of everything offered; then some vacant ones up to a multiple of 64."""
    room = room_for(rows)
    by_column = np.full((room, width), 10, np.int64)
    pods, wanted = np.zeros(room, np.int32), np.array(amounts, np.int64)
    kind, loose = np.where(np.arange(room) < rows, KIND, VACANT).astype(np.int32), np.zeros(room, np.bool_)
    return Nodes(KIND, kind, loose, pods, pods + 1, by_column, by_column * 0, np.arange(len(wanted)), wanted)


def answers_for(rows: int, program: Program) -> Outcomes:
    return Outcomes(np.full(rows, UNTOUCHED, np.int8), np.zeros((rows, len(program.steps)), np.uint8))


def lanes_of(block: RowBlock) -> Lanes:
    """Lanes of all rows, which nobody has taken over yet."""
    rows, zones, width = block.free.shape
    kept = lanes(wholly.SCRATCH, (zones, width, room_for(rows)))
    kept.field.fill(5.0)
    return kept._replace(behind=np.arange(rows, dtype=np.int32))


def surveyed(
    kernel: Kernel, block: RowBlock, program: Program, scoring: Scoring, every: Lanes | None = None
) -> tuple[Outcomes, list[int]]:
    rows = np.arange(len(block.busy), dtype=np.int32)
    answers = answers_for(len(rows), program)
    made = plan.plan(block.rules, program, scoring)
    left = kernel.survey(block, nodes_of(len(rows), block.free.shape[2]), rows, made, answers, every)
    assert not len(left.others)
    return answers, left.undecided.tolist()


def agrees(kernel: Kernel, question: tuple[RowBlock, Program], scoring: Scoring, *, by_lanes: bool = False) -> None:
    """So many rows that they do not fit side by side, and are not few either."""
    one, program = question
    block = repeated(one, 1 + stackedarrays.FEW // len(one.busy))
    answers, left = surveyed(kernel, block, program, scoring, lanes_of(block) if by_lanes else None)
    wanted = scalar.evaluate(one, np.arange(len(one.busy), dtype=np.int32), program, scoring)
    for row in range(len(block.busy)):
        code, masks = wanted.code_or_score[row % len(one.busy)], wanted.masks[row % len(one.busy)]
        assert row in left or answers.code_or_score[row] == code
        assert row in left or answers.masks[row].tolist() == masks.tolist()
        assert row not in left or answers.code_or_score[row] == UNTOUCHED


def repeated(block: RowBlock, times: int) -> RowBlock:
    arrays: list[Any] = [np.concatenate([each] * times) for each in block[1:]]
    return RowBlock(block.rules, *arrays)


def kernel_named(name: str) -> Kernel:
    if name == "arrays":
        return arrays
    require(find_spec("numba"), "numba: make fast")
    from numalign.placement.kernels import compiled

    return compiled


@holds_for(questions(), scorings, examples=40)
def test_numpy_surveys_as_rows_are_evaluated(question: tuple[RowBlock, Program], scoring: Scoring) -> None:
    agrees(kernel_named("arrays"), question, scoring)


@holds_for(questions(), scorings, examples=40)
def test_numpy_surveys_by_lanes_as_rows_are_evaluated(question: tuple[RowBlock, Program], scoring: Scoring) -> None:
    agrees(kernel_named("arrays"), question, scoring, by_lanes=True)


@holds_for(questions(), scorings, examples=40)
def test_machine_code_surveys_as_rows_are_evaluated(question: tuple[RowBlock, Program], scoring: Scoring) -> None:
    agrees(kernel_named("compiled"), question, scoring)


@holds_for(questions(), scorings, examples=40)
def test_machine_code_surveys_by_lanes_as_rows_are_evaluated(
    question: tuple[RowBlock, Program], scoring: Scoring
) -> None:
    agrees(kernel_named("compiled"), question, scoring, by_lanes=True)


@pytest.fixture(params=["arrays", "compiled"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return kernel_named(request.param)


@pytest.fixture(params=[False, True], ids=["by rows", "by lanes"])
def survey(kernel: Kernel, request: pytest.FixtureRequest) -> Survey:
    return partial(surveyed_three, kernel, by_lanes=request.param)


def surveyed_three(kernel: Kernel, nodes: Nodes, *, by_lanes: bool) -> tuple[list[int], list[int], list[int]]:
    """Three rows with room for the pod in every zone."""
    block = repeated(ROOMY, 3)
    answers = answers_for(3, ONE_CPU)
    made = plan.plan(RULES, ONE_CPU, Scoring())
    left = kernel.survey(
        block, nodes, np.arange(3, dtype=np.int32), made, answers, lanes_of(block) if by_lanes else None
    )
    return answers.code_or_score.tolist(), left.undecided.tolist(), left.others.tolist()


def test_rows_of_other_kinds_are_handed_back(survey: Survey) -> None:
    nodes = nodes_of(3, WIDTH)
    nodes.kind[1] = KIND + 1
    assert survey(nodes) == ([87, UNTOUCHED, 87], [], [1])


def test_loose_rows_are_not_decided(survey: Survey) -> None:
    nodes = nodes_of(3, WIDTH)
    nodes.loose[2] = True
    assert survey(nodes) == ([87, 87, UNTOUCHED], [2], [])


def test_a_node_that_is_full_as_a_whole_is_not_looked_into(survey: Survey) -> None:
    nodes = nodes_of(3, WIDTH, amounts=(4,))
    nodes.requested[0, 0], nodes.pods[1] = 7, 1
    nodes.requested[2, 0], nodes.loose[2] = 6, True
    assert survey(nodes) == ([NO_ROOM, NO_ROOM, UNTOUCHED], [2], [])


def test_a_single_zone_that_is_too_small_is_refused_at_once_by_machine_code() -> None:
    block = block_of(RULES, {CPU: (8, 8)})
    answers, left = surveyed(kernel_named("compiled"), block, asks(Ask(cpus=9)), Scoring())
    assert (answers.code_or_score.tolist(), left) == ([-1], [])


TWO_CPUS_EACH = asks(Ask(cpus=2), Ask(), Ask(cpus=2))
BY_ZONES = {
    "room for the whole pod": ((4, 8), [1, 0, 1]),
    "room for some containers": ((3, 8), [1, 0, 2]),
    "room for none of them": ((1, 8), [2, 0, 2]),
}


@pytest.mark.parametrize("free, masks", BY_ZONES.values(), ids=BY_ZONES)
def test_the_first_zone_gets_the_containers_it_has_room_for(
    kernel: Kernel, free: tuple[int, int], masks: list[int]
) -> None:
    block = block_of(RULES, {CPU: free}, size={CPU: (8, 8)})
    answers, left = surveyed(kernel, block, TWO_CPUS_EACH, Scoring(), lanes_of(block))
    assert (answers.masks.tolist(), left) == ([masks], [])


def test_what_is_free_where_there_is_nothing_of_it_does_not_count(kernel: Kernel) -> None:
    block = block_of(RULES, {CPU: (8, 8), GPU: (1, 1)})
    block.allocatable[0, 0, GPU] = 0
    program = asks(Ask(cpus=4, devices=((GPU, 1),)))
    answers, left = surveyed(kernel, block, program, Scoring(), lanes_of(block))
    assert (answers.code_or_score.tolist(), answers.masks.tolist(), left) == ([50], [[1]], [])
