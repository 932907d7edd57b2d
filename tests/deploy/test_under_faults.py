"""Behind a proxy that loses, repeats, delays and fails calls, repeated runs of the deployer come to the right end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from numalign.deploy.apply import applying, waiting
from numalign.deploy.apply.applying import Refused, Stopped
from numalign.deploy.apply.inventory import Busy
from numalign.kube.errors import KubeError
from numalign.simulator import virtualtime
from tests.deploy import sites
from tests.deploy.sites import HERE, Site, site
from tests.embedded.faultproxy import Weather

STORM = Weather(calls=0.05, outages=60.0, outage=5.0, delay=20.0)
RUNS = 60
"""In calm weather one is enough."""


async def repeated(run: Callable[[], Awaitable[object]]) -> int:
    """Until it ends well, as people do; the number of runs."""
    for number in range(1, RUNS):
        try:
            await run()
        except (KubeError, Refused, Stopped, Busy, waiting.TimedOut):
            continue
        return number
    raise AssertionError(f"{RUNS} runs did not end well")


async def weathered(seed: int) -> int:
    async with site(1, without_crd=True, seed=seed, weather=STORM) as here:
        before = here.left()
        runs = await repeated(lambda: here.apply(sites.objects()))
        assert set(map(str, await known(here))) == {str(each) for each in await wanted(here)}
        less = [each for each in sites.objects() if each["metadata"]["name"] != "numalign-agent"]
        runs += await repeated(lambda: here.apply(less))
        assert not [name for name in here.left() if name.endswith("numalign-agent")]
        runs += await repeated(lambda: removed(here))
        assert here.left() == before
        return runs


async def removed(here: Site) -> None:
    found = await here.remove(purge=True, seconds=120.0)
    left = [each for each in found if each.action == "still there"]
    if left:
        raise waiting.TimedOut([waiting.Standing(str(each.object), ready=False, words="") for each in left])


async def known(here: Site) -> list[object]:
    refs: list[object] = []

    async def read() -> None:
        refs[:] = await here.inventory()

    await repeated(read)
    return refs


async def wanted(here: Site) -> list[object]:
    refs: list[object] = []

    async def plan() -> None:
        refs[:] = (await applying.plan_for(here.server, HERE, sites.objects(), applying.ApplyOptions())).refs

    await repeated(plan)
    return refs


@pytest.mark.parametrize("seed", range(4))
def test_installed_changed_and_removed_in_a_storm(seed: int) -> None:
    assert virtualtime.run(weathered(seed)) >= 3


@pytest.mark.slow
def test_installed_changed_and_removed_whatever_the_seed() -> None:
    runs = [virtualtime.run(weathered(seed)) for seed in range(100, 300)]
    assert max(runs) > 3
