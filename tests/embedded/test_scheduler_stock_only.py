"""A scheduler that takes kube-scheduler's place names what it does not do, and how many pods need it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects import stockonly
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from tests.embedded import schedulerstories as stories
from tests.embedded.test_scheduler_preemption import servers

CLAIM = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]


@pytest.mark.parametrize(
    "spec, expected",
    [
        ({}, ""),
        ({"resourceClaims": CLAIM}, stockonly.CLAIMS),
        ({"schedulingGroup": {"podGroupName": "training"}}, stockonly.GROUPS),
        ({"workloadRef": {"name": "training", "podGroup": "workers"}}, stockonly.GROUPS),
    ],
    ids=["nothing", "claims", "group", "workload of 1.35"],
)
def test_what_a_pod_uses_is_named(spec: dict[str, Any], expected: str) -> None:
    assert stockonly.of(decode.decode(Pod, {"metadata": {"name": "a"}, "spec": spec}).spec) == expected


def test_waiting_pods_that_need_kube_scheduler_are_counted_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        clock = virtualtime.clock(Random(1))
        async with cluster.running(servers(1), clock, Random(1)) as embedded:
            for number in range(2):
                embedded.api.create(PODS, stories.pod(f"p{number}", 1, resourceClaims=CLAIM))
            embedded.api.create(PODS, stories.pod("plain", 1))
            async with Client(embedded.access(), clock=clock) as client:
                running = asyncio.ensure_future(Scheduler(Setup(), client).run())
                await asyncio.sleep(20)
                running.cancel()

    virtualtime.run(story())
    assert [each.message for each in caplog.records if "waiting pods" in each.message] == [
        f"2 waiting pods use {stockonly.CLAIMS}"
    ]
