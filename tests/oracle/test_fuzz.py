"""A short campaign against the real kubelet, with cases that are always the same and cases that never were."""

import time

import pytest

from numalign.lab import build
from numalign.oracle import fuzz, sources
from tests import conftest

SECONDS = 30


@pytest.mark.parametrize("seed", [20261115, int(time.time())], ids=["fixed", "fresh"])
def test_the_real_kubelet_and_the_model_agree(seed: int) -> None:
    conftest.require(build.found(), "Go, to build the real kubelet's managers")
    source = sources.kubelet("kubelet@1.37")
    plan = fuzz.FuzzPlan(
        program=source.program(), source=source, seed=seed, cases=1_000_000, minutes=SECONDS / 60, workers=2
    )
    summary = fuzz.campaign(plan, lambda _: None)
    assert summary.compared > 100
    assert not summary.disagreements, [fuzz.reduced(plan, judged) for judged in summary.found[:2]]
