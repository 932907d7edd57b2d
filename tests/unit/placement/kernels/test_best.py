"""NumPy serves until compiled kernels are ready; machine code belongs to the functions it was made from."""

from importlib.util import find_spec

import numpy as np
import pytest

from numalign.placement import kernels
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask
from numalign.placement.kernels import admit, arrays
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.strategies import Scoring
from tests.conftest import require
from tests.unit.placement.kernels.blocks import CPU, GPU, WIDTH, asks, block_of

RULES = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True)
ROOMY = block_of(RULES, {CPU: (8, 8)})
NO_SUCH = asks(Ask(cpus=9, devices=((WIDTH + 7, 1), (GPU, 1))))


@pytest.fixture(autouse=True)
def _cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_compiled", None)


def test_numpy_serves_first() -> None:
    assert kernels.best() is arrays


def test_without_numba_numpy_serves_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda _: None)
    assert not kernels.warm()
    assert kernels.best() is arrays


def test_compiled_code_serves_once_it_is_warm() -> None:
    require(find_spec("numba"), "numba: make fast")
    assert kernels.warm()
    best, made = kernels.best(), plans.plan(RULES, NO_SUCH, Scoring())
    assert best is not arrays
    assert best.evaluate_row(ROOMY, 0, made) == arrays.evaluate_row(ROOMY, 0, made)
    assert best.evaluate(ROOMY, np.zeros(3, np.int32), NO_SUCH, Scoring()).code_or_score.tolist() == [-1] * 3


def test_nothing_is_left_to_compile_once_it_is_warm() -> None:
    require(find_spec("numba"), "numba: make fast")
    assert kernels.warm()
    from numalign.placement.kernels import compiled

    with_lanes_and_without = 2
    assert len(compiled._compiled_survey.signatures) == with_lanes_and_without


def test_a_changed_row_kernel_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    require(find_spec("numba"), "numba: make fast")
    from numalign.placement.kernels import compiled

    before = compiled.fingerprint()
    assert compiled.fingerprint() == before
    monkeypatch.setattr(admit, "begin", lambda plan, work: None)
    assert compiled.fingerprint() != before
