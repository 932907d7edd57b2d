"""Plain Python serves until machine code is ready; machine code belongs to the functions it was made from."""

from importlib.util import find_spec

import numpy as np
import pytest

from numalign.placement import kernels
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask
from numalign.placement.engine import Engine
from numalign.placement.kernels import admit, scalar
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.plan import Scoring
from tests.conftest import require
from tests.unit.placement.kernels.blocks import CPU, GPU, WIDTH, asks, block_of

RULES = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True)
ROOMY = block_of(RULES, {CPU: (8, 8)})
NO_SUCH = asks(Ask(cpus=9, devices=((WIDTH + 7, 1), (GPU, 1))))


def test_the_engine_starts_with_plain_python() -> None:
    assert Engine().kernel is scalar


def test_without_numba_plain_python_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    engine = Engine()
    assert not engine.warm()
    assert engine.kernel is scalar


def test_machine_code_serves_the_engine_that_loaded_it_and_no_other() -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    engine, plan = Engine(), plans.plan(RULES, NO_SUCH, Scoring())
    assert engine.warm()
    from numalign.placement.kernels import compiled

    assert engine.kernel is compiled
    assert Engine().kernel is scalar
    assert engine.kernel.evaluate_row(ROOMY, 0, plan) == scalar.evaluate_row(ROOMY, 0, plan)
    assert engine.kernel.evaluate(ROOMY, np.zeros(3, np.int32), plan).code_or_score.tolist() == [-1] * 3


def test_nothing_is_left_to_compile_once_it_is_warm() -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    compiled = kernels.load()
    assert compiled is not None
    compiled.evaluate(ROOMY, np.zeros(3, np.int32), plans.plan(RULES, NO_SUCH, Scoring()))
    from numalign.placement.kernels.compiled import _compiled_rows

    assert len(_compiled_rows.signatures) == 1


def test_a_changed_row_kernel_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    require(find_spec("numba"), "numba, as `make install` brings it")
    from numalign.placement.kernels import compiled

    before = compiled.fingerprint()
    assert compiled.fingerprint() == before
    monkeypatch.setattr(admit, "begin", lambda plan, work: None)
    assert compiled.fingerprint() != before
