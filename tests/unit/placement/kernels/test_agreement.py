"""Machine code gives the answers of plain Python, and these are the row model's and the kubelet's."""

from importlib.util import find_spec

import numpy as np

from numalign.kubelet import admission
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.kernels import admit, scalar, singlezone
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.block import ASK, Kernel, RowBlock
from numalign.placement.kernels.plan import Scoring
from numalign.placement.kernels.work import Work
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.evaluate import Verdict
from tests.campaigns import holds_for
from tests.conftest import require
from tests.strategies.placement import Lived, lived
from tests.unit.placement.kernels.blocks import (
    CPU,
    MEMORY,
    WIDTH,
    asks,
    block_of_node,
    empty,
    evaluated,
    questions,
    row_of,
    scorings,
)

Question = tuple[RowBlock, Program]
UNSURE = {Verdict.NOT_CERTAIN, Verdict.NOT_DECIDED}


def answers(kernel: Kernel, question: Question, scoring: Scoring) -> tuple[list[int], list[list[int]]]:
    block, program = question
    # Rows out of order and several times, as an engine may ask for them, and more than are evaluated together.
    rows = np.array([*range(len(block.busy)), 3, 0] * 6, np.int32)
    assert len(rows) > singlezone.LANES
    outcomes = evaluated(kernel, block, rows, program, scoring)
    return outcomes.code_or_score.tolist(), outcomes.masks.tolist()


@holds_for(questions(), scorings, examples=40)
def test_the_single_zone_that_is_found_first_is_the_one_that_all_rules_come_to(
    question: Question, scoring: Scoring
) -> None:
    block, program = question
    plan = plans.plan(block.rules, program, scoring)
    for row in range(len(block.busy)) if plan.in_one_zone else ():
        found, work = scalar.in_one_zone(block, row, plan), Work()
        if found is not None:
            scalar.load(block, row, plan, work)
            assert (admit.decide(plan, work), tuple(work.masks[: plan.steps])) == found


def test_what_is_free_elsewhere_stays_known_where_a_zone_has_all_that_a_container_asks_for() -> None:
    rules = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True, threads_per_core=2, sockets=(1, 1))
    block, work = empty(rules, 1), Work()
    for amounts in (block.free, block.size, block.allocatable):
        amounts[:, :, CPU] = 8
    block.split_known[:] = False
    plan = plans.plan(rules, asks(Ask(cpus=1), Ask(cpus=1)), Scoring())
    scalar.load(block, 0, plan, work)
    assert (admit.decide(plan, work), tuple(work.masks[:2])) == scalar.in_one_zone(block, 0, plan)


@holds_for(questions(), scorings, examples=40)
def test_compiled_code_answers_as_plain_python_does(question: Question, scoring: Scoring) -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    from numalign.placement.kernels import compiled

    assert answers(compiled, question, scoring) == answers(scalar, question, scoring)


def test_machine_code_makes_no_detour_for_a_device_that_no_node_has() -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    from numalign.placement.kernels import compiled

    rules = NodeRules(zones=tuple(range(8)), policy="restricted", static_cpus=True, static_memory=True)
    block = empty(rules, 12)
    for amounts in (block.free, block.size, block.allocatable):
        amounts[:, :, (CPU, MEMORY)] = np.arange(8)[:, None]
    first, second = Ask(cpus=1, memory=((MEMORY, 1),)), Ask(cpus=1, memory=((MEMORY, 1),), devices=((WIDTH, 1),))
    program = asks(first, second)
    assert answers(compiled, (block, program), Scoring()) == answers(scalar, (block, program), Scoring())


@holds_for(questions(), examples=10)
def test_one_row_is_answered_as_many_are(question: Question) -> None:
    block, program = question
    plan = plans.plan(block.rules, program, Scoring())
    codes, masks = answers(scalar, question, Scoring())
    assert scalar.evaluate_row(block, 3, plan) == (codes[3], tuple(masks[3]))


@holds_for(questions(), examples=30)
def test_what_a_kernel_decides_the_row_model_decides_alike(question: Question) -> None:
    block, program = question
    outcomes = evaluated(scalar, block, np.arange(len(block.busy), dtype=np.int32), program, Scoring())
    for row, code in enumerate(outcomes.code_or_score.tolist()):
        verdict = evaluate.evaluate(row_of(block, row), program)
        if code == ASK or verdict.code in UNSURE:
            continue
        assert verdict.fits == (code > 0), (row, verdict)
        for mask, possible in zip(outcomes.masks[row].tolist(), verdict.possible, strict=False):
            assert mask in possible or mask in (0, block.rules.every_zone)


@holds_for(lived(coming=4), examples=30)
def test_a_kernel_decides_as_the_kubelet_does(life: Lived) -> None:
    state = life.state
    for pod in life.coming:
        program, block = life.view.program(pod), block_of_node(life.view, state)
        state, outcome = admission.align(life.kubelet, state, pod)
        if block is None:
            return
        made = plans.plan(life.view.rules, program, Scoring())
        code, masks = scalar.evaluate_row(block, 0, made)
        if code != ASK:
            assert outcome.verdict == ("admitted" if code > 0 else "rejected"), (code, outcome)
        for container, mask in zip(pod.in_admission_order(), masks if code > 0 else (), strict=False):
            stored = state.affinity(pod.metadata.uid, container.name).mask
            assert mask == (0 if stored is None else life.view.positions(stored))
