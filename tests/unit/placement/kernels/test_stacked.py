"""Few rows are decided in another way than many, and alike."""

import numpy as np

from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.kernels import directarrays, plan, stackedarrays
from numalign.placement.kernels.block import RowBlock
from numalign.placement.kernels.directarrays import Lookout
from numalign.placement.kernels.strategies import Scoring
from tests.campaigns import holds_for
from tests.unit.placement.kernels.blocks import CPU, asks, block_of, questions, scorings


@holds_for(questions(), scorings, examples=60)
def test_few_rows_are_answered_as_many_are(question: tuple[RowBlock, Program], scoring: Scoring) -> None:
    block, program = question
    made, rows = plan.plan(block.rules, program, scoring), np.array([*range(len(block.busy)), 3, 0], np.int32)
    if not directarrays.suits(made, block.free.shape[2]):
        return
    # Alone, a row is mostly one of those that need but one look.
    for some in (rows, *rows.reshape(-1, 1)):
        few, many = stackedarrays.decide(block, some, made), Lookout(block, some, made).decide()
        assert few is None or few.code_or_score.tolist() == many.code_or_score.tolist()
        assert few is None or few.masks.tolist() == many.masks.tolist()


def test_plain_rows_are_decided_by_it() -> None:
    rules = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True)
    block = block_of(rules, {CPU: (4, 8)})
    made = plan.plan(rules, asks(Ask(cpus=6)), Scoring())
    found = stackedarrays.decide(block, np.array([0], np.int32), made)
    assert found is not None
    assert found.masks.tolist() == [[2]]
