"""The labs that tests share: real kubelets, each configured in another way.

They need root and Go; without them the tests are skipped with a reason, or fail where CI=true."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from numalign.lab import preflight
from numalign.lab.campaign import script
from numalign.lab.processes import Part
from numalign.lab.spec import LabSpec
from tests.conftest import require
from tests.lab import agents, fleet, tales
from tests.lab import installed as installing
from tests.lab import labs as sharing
from tests.lab.installed import Installed
from tests.lab.labs import Labs
from tests.lab.live import Live
from tests.lab.tales import Tales


@pytest.fixture(scope="session", autouse=True)
def able() -> None:
    """A lab of a campaign is the largest that cannot be split up."""
    problem = preflight.missing(len(script.nodes()), reporters=len(script.nodes()))
    require(not problem, f"what a lab runs on: {problem}")


@pytest.fixture(scope="session")
def labs(able: None) -> Iterator[Labs]:
    with sharing.shared() as found:
        yield found


@pytest.fixture
def live(labs: Labs) -> Live:
    return tales.shared(labs)


@pytest.fixture(scope="module")
def apart(labs: Labs) -> Live:
    """Without schedulers and controllers."""
    return labs.of(LabSpec(name=f"apart-{os.getpid()}", nodes=fleet.apart(), controllers=False))


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
def told(labs: Labs) -> Tales:
    return Tales(labs)


@pytest.fixture
def cluster(live: Live) -> Iterator[Live]:
    """Without pods, before and after."""
    yield live
    live.clear()


@pytest.fixture(scope="module")
def installed(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installing.shared(labs, tmp_path_factory.mktemp("probe"))


@pytest.fixture
def clean(installed: Installed) -> Iterator[Installed]:
    """Without pods of other tests afterwards."""
    yield installed
    installed.kubectl("delete", "deployments,pods", "--all", "--force", "--grace-period=0")
    installed.live.clear()
