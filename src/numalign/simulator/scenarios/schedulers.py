"""Who schedules the pods of a story: for our scheduler's name, our scheduler, in the same loop and time.

`playing` wraps a story in `running`. The topology-blind scheduler is part of every embedded cluster; of any other name
it is supposed that somebody outside serves it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from numalign.kube.client import Client
from numalign.scheduler.choose import profiles
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator.cluster import Cluster


@asynccontextmanager
async def running(name: str, embedded: Cluster, chances: random.Random) -> AsyncIterator[Scheduler | None]:
    """Ours until the block is left, if the name is ours; a failure of it is raised there."""
    if name != profiles.NAME:
        yield None
        return
    async with Client(embedded.access(), clock=embedded.clock) as client, asyncio.TaskGroup() as group:
        ours = Scheduler(Setup(instance=f"{name}-embedded", rng=chances), client)
        task = group.create_task(ours.run(), name=name)
        try:
            yield ours
        finally:
            task.cancel()
