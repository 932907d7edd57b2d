"""Made-up cases, put to a real component and to ours: a few whenever tests run, many in the slow campaign.

How many is fixed, how long they take is not: a busy machine proves as much as a quiet one. One seed is always
the same, and one never was before."""

import time
from typing import Any, Final

import pytest

from numalign.lab import build
from numalign.oracle import fuzz
from numalign.oracle.fuzz import FuzzSummary
from numalign.oracle.sources import Source
from tests import conftest

LONG: Final = 20_000
"""Cases of a campaign."""

seeds = pytest.mark.parametrize("seed", [20261115, int(time.time())], ids=["fixed", "fresh"])


def campaign(*values: Any) -> Any:
    """The parameters of a campaign: `values`, and the number of cases."""
    name = "-".join((*map(str, values), "campaign"))
    return pytest.param(*values, LONG, id=name, marks=pytest.mark.slow)


def agreeing(source: Source, seed: int, cases: int) -> FuzzSummary:
    """The result of a comparison without disagreement."""
    plan = fuzz.FuzzPlan(program=source.program(), source=source, seed=seed, cases=cases)
    summary = fuzz.campaign(plan, lambda _: None)
    assert not summary.disagreements, [fuzz.reduced(plan, judged) for judged in summary.found[:2]]
    # The rest has no answer that can be compared: the real component's varies, or the model's budget is spent.
    assert summary.compared > 0.9 * cases == 0.9 * summary.drawn
    return summary


def require_go(component: str) -> None:
    conftest.require(build.found(), f"Go, to build {component}")
