"""The scheduler's log at the default verbosity: what it saw at the start, and what happened since."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import pytest

from numalign.kube.client import Client
from numalign.scheduler import summary
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.scenarios import catalogue
from tests.embedded import schedulerstories as stories


def logged(caplog: pytest.LogCaptureFixture, seconds: float, pods: int) -> list[tuple[str, dict[str, Any]]]:
    """What a scheduler logs on a small cluster in this time."""

    async def run() -> None:
        clock = virtualtime.clock(random.Random(1))
        nodes = catalogue.scenario("burst").nodes
        async with cluster.running(nodes, clock, random.Random(1)) as embedded:
            await asyncio.sleep(10)
            async with Client(embedded.access(), clock=clock) as client:
                running = asyncio.ensure_future(Scheduler(Setup(instance="x"), client).run())
                for number in range(pods):
                    embedded.api.create(PODS, stories.pod(f"p{number}", 100))
                await asyncio.sleep(seconds)
                running.cancel()

    with caplog.at_level(logging.INFO, summary.LOG.name):
        virtualtime.run(run())
    records = [each for each in caplog.records if each.name == summary.LOG.name]
    return [
        (each.getMessage(), vars(each)["about"]) for each in records if vars(each)["about"]["schedulers"] == "numalign"
    ]


def test_what_was_seen_at_the_start_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    ((words, fields),) = logged(caplog, 30.0, pods=0)
    assert (words, fields["nodes"], fields["reports"], fields["pending"]) == ("Synced caches", 3, 3, 0)


def test_bindings_and_refusals_are_summed_up_and_silence_means_that_nothing_happened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (_, summed, *others) = logged(caplog, 900.0, pods=5)
    words, fields = summed
    assert words == "Summary"
    assert fields["bound"] + fields["pending"] == 5
    assert fields["unschedulable"] >= fields["pending"] > 0
    assert fields["rejected"] == 0
    # Pods that wait are tried again from time to time; nothing else happens.
    assert all(each["bound"] == 0 for _, each in others)


def test_a_quiet_scheduler_gives_a_sign_of_life_every_hour(caplog: pytest.LogCaptureFixture) -> None:
    (_, *summaries) = logged(caplog, 2 * summary.QUIET_INTERVAL + 60, pods=0)
    assert [fields["seconds"] for _, fields in summaries] == [3600, 3600]
