"""Runs our scheduler on the embedded cluster, in the same event loop.

`cluster` starts `node_totals` as default-scheduler: our scheduler with NodeResourceTopologyMatch disabled in its
profile. As far as zones are concerned, stock kube-scheduler behaves the same. Scenarios and `numalign cluster up` start
`zone_aware` beside it. Both talk HTTP to the embedded API server, without a socket; they are the program that `numalign
scheduler run` starts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.api.schedulerconfig.plugins import ZONES
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.transport.auth import Access
from numalign.placement.decisions import Randomness
from numalign.scheduler import main, profiles, settings
from numalign.scheduler.main import NOTHING_SAID, Scheduler, Setup

NODE_TOTALS_ONLY: Final[dict[str, Any]] = {
    **NOTHING_SAID,
    "profiles": [{"schedulerName": DEFAULT_SCHEDULER, "plugins": {"multiPoint": {"disabled": [{"name": ZONES}]}}}],
}


@asynccontextmanager
async def running(setup: Setup, access: Access, clock: Clock) -> AsyncIterator[Scheduler]:
    """Runs the scheduler until the block ends. An error of the scheduler is raised there."""
    async with Client(access, clock=clock) as client, asyncio.TaskGroup() as group:
        scheduler = Scheduler(setup, client)
        task = group.create_task(scheduler.run(), name=setup.config.profiles[0].scheduler_name)
        try:
            yield scheduler
        finally:
            task.cancel()


def node_totals(rng: Randomness) -> Setup:
    """Serves default-scheduler, and sees node totals only."""
    config = settings.read(NODE_TOTALS_ONLY, DEFAULT_SCHEDULER)
    return Setup(config=config, instance=f"{DEFAULT_SCHEDULER}-embedded", rng=rng)


def zone_aware(rng: Randomness) -> Setup:
    """Serves our scheduler's own name, with the default configuration."""
    return Setup(config=main.defaults(), instance=f"{profiles.NAME}-embedded", rng=rng)
