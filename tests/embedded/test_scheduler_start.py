"""What the scheduler does first: it knows the cluster before it wants to lead, unless it is told otherwise."""

from __future__ import annotations

import asyncio
import random

import pytest

from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.scheduler import settings
from numalign.scheduler.main import NOTHING_SAID, Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import LEASES


async def holders(delayed: bool) -> list[str]:
    """Of leases after a while in which the scheduler has not seen all of the cluster."""
    clock = virtualtime.clock(random.Random(1))
    config = settings.read({**NOTHING_SAID, "delayCacheUntilActive": delayed}, "test")
    async with cluster.running([], clock, random.Random(1)) as embedded:
        async with Client(embedded.access(), clock=clock) as client:
            election = leading.election("numalign", "kube-system", identity="us")
            scheduler = Scheduler(Setup(config=config, rng=random.Random(1)), client, election)
            scheduler.watched.synced = asyncio.Event().wait  # type: ignore[assignment,method-assign]
            running = asyncio.ensure_future(scheduler.run())
            await asyncio.sleep(60)
            running.cancel()
        return [str(each["spec"].get("holderIdentity")) for each in embedded.api.list(LEASES).items]


@pytest.mark.parametrize("delayed, led_by", [(False, []), (True, ["us"])], ids=["as usual", "delayCacheUntilActive"])
def test_the_lease_is_wanted_once_the_cluster_is_known(delayed: bool, led_by: list[str]) -> None:
    assert virtualtime.run(holders(delayed)) == led_by
