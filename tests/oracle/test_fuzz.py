"""The kubelet's managers and our model, with cases that are always the same and cases that never were."""

import pytest

from numalign.lab import build
from numalign.oracle import sources
from tests.oracle import againstreal


@pytest.mark.built
@againstreal.seeds
@pytest.mark.parametrize(
    "minor, cases",
    [pytest.param("1.37", 1_000, id="quick"), *(againstreal.campaign(minor) for minor in build.ORACLE_MINORS)],
)
def test_the_real_kubelet_and_the_model_agree(seed: int, minor: str, cases: int) -> None:
    againstreal.require_go("the real kubelet's managers")
    againstreal.agreeing(sources.kubelet(f"kubelet@{minor}"), seed, cases)
