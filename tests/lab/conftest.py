"""The labs that tests share: real kubelets, each configured in another way.

Each is started once, and needs root and Go; without them the tests are skipped with a reason, or fail where CI=true."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from numalign.lab import preflight
from numalign.lab.processes import Part
from numalign.lab.spec import LabSpec
from tests.conftest import require
from tests.lab import agents, fleet, tales
from tests.lab.live import Live
from tests.lab.tales import Tales


@pytest.fixture(scope="session", autouse=True)
def able() -> None:
    every = (*fleet.nodes(), *fleet.apart())
    problem = preflight.missing(len(every), reporters=len(every), labs=2)
    require(not problem, f"what a lab runs on: {problem}")


@pytest.fixture(scope="session")
def live(able: None) -> Iterator[Live]:
    with Live.up(tales.spec(f"tests-{os.getpid()}", fleet.nodes())) as found:
        yield found


@pytest.fixture(scope="session")
def apart(able: None) -> Iterator[Live]:
    """Without schedulers and controllers."""
    wanted = LabSpec(name=f"apart-{os.getpid()}", nodes=fleet.apart(), controllers=False)
    with Live.up(wanted) as found:
        yield found


@pytest.fixture
def single(apart: Live) -> Iterator[Live]:
    """Without pods, before and after."""
    yield apart
    apart.clear()


@pytest.fixture(scope="module")
def hasty(apart: Live) -> Iterator[Part]:
    """The only agent of the node that is told of, with a short period."""
    with agents.instead(apart, fleet.TOLD) as found:
        yield found


@pytest.fixture(scope="session", name="tales")
def told(request: pytest.FixtureRequest, able: None) -> Tales:
    return Tales(lambda: request.getfixturevalue("live"))


@pytest.fixture
def cluster(live: Live) -> Iterator[Live]:
    """Without pods, before and after."""
    yield live
    live.clear()
