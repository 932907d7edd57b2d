"""What the configuration says is what the process does."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Terms
from numalign.scheduler import settings
from numalign.scheduler.main import NOTHING_SAID, Scheduler, Setup
from numalign.simulator import virtualtime
from tests.embedded.barecluster import Bare


def configured(**written: Any) -> Setup:
    return Setup(config=settings.read({**NOTHING_SAID, **written}, "test"), rng=random.Random(1))


async def watched(setup: Setup) -> list[bool]:
    """Whether a replica has seen the cluster while somebody else leads, and once it leads itself."""
    bare, terms = Bare(), Terms(lease=15, renew=10, retry=2)
    held = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": "2030-01-01T00:00:00.000000Z"}
    bare.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "numalign", "namespace": "kube-system"},
            "spec": held,
        }
    )
    async with Client(bare.cluster.access(), clock=bare.clock) as client, asyncio.TaskGroup() as group:
        scheduler = Scheduler(setup, client, leading.election("numalign", "kube-system", terms, "us"))
        task = group.create_task(scheduler.run())
        seen = []
        for seconds in (5.0, 40.0):
            await bare.clock.sleep(seconds)
            seen.append(scheduler.watched.has_synced)
        task.cancel()
    return seen


@pytest.mark.parametrize("delayed, seen", [(False, [True, True]), (True, [False, True])])
def test_a_replica_in_waiting_watches_unless_it_is_told_not_to(delayed: bool, seen: list[bool]) -> None:
    assert virtualtime.run(watched(configured(delayCacheUntilActive=delayed))) == seen
