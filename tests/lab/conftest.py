"""The lab that most tests share: real kubelets, each configured in another way.

It is started once, and needs root and Go; without them the tests are skipped with a reason, or fail where CI=true."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from numalign.kube import loops
from numalign.lab import ability, up
from numalign.lab.spec import LabSpec
from tests.conftest import require
from tests.lab import fleet
from tests.lab.live import Live


@pytest.fixture(scope="session", autouse=True)
def able() -> None:
    problem = ability.missing()
    require(not problem, f"what a lab runs on: {problem}")


@pytest.fixture(scope="session")
def live(able: None) -> Iterator[Live]:
    name = f"tests-{os.getpid()}"
    wanted = LabSpec(name=name, nodes=fleet.nodes(), scheduler=True, agent=True, stock_scheduler=True)
    with loops.runner() as runner:
        context = up.up(wanted)
        lab = runner.run(context.__aenter__())
        try:
            with Live.of(lab, runner) as found:
                yield found
        finally:
            runner.run(context.__aexit__(None, None, None))


@pytest.fixture
def cluster(live: Live) -> Iterator[Live]:
    """Without pods, before and after."""
    yield live
    live.clear()
