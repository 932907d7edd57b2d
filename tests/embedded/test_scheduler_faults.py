"""Whatever befalls the API server, the network or the scheduler: every pod is bound, once, and stays where it is."""

from __future__ import annotations

import asyncio

import pytest

from numalign.kubelet import presets
from numalign.simulator.nodes.specs import NodeSpec
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.embedded.faultproxy import Weather
from tests.embedded.schedulerstories import Books, Stage, Told

MACHINE = presets.machine("2x16")
SETTINGS = nodes.settings(MACHINE, "single-numa-node")
NODES = [NodeSpec(name=f"w-{n}", machine=MACHINE, settings=SETTINGS) for n in range(6)]
FOUL = Weather(silence=60.0)
PODS = 24
"""Of five CPUs, as many as six nodes of two zones take at two a zone."""


async def burst(stage: Stage) -> None:
    for number in range(PODS):
        stage.create(f"p-{number}", 5)
    await stage.clock.sleep(0.2)


def held(told: Told, pods: int = PODS) -> None:
    assert told.broken == []
    assert told.waiting == []
    assert told.count("bound") == pods
    assert [books for books in told.books if books != Books(pods=len(told.living))] == []


def test_in_fair_weather_all_are_bound_and_none_is_turned_away() -> None:
    told = stories.told(burst, NODES)
    held(told)
    assert told.count("rejected") == 0
    assert told.count("started") == PODS


@pytest.mark.parametrize("seed", range(3))
def test_the_api_server_restarts_in_the_middle(seed: int) -> None:
    async def plot(stage: Stage) -> None:
        restarting = asyncio.ensure_future(_after(stage, stage.restart_server(stage.draw.uniform(1.0, 20.0))))
        await burst(stage)
        await restarting

    told = stories.told(plot, NODES, seed=seed)
    held(told)
    assert told.count("rejected") == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_leader_is_killed_wherever_it_waits_and_another_takes_over(seed: int) -> None:
    told = stories.told(burst_with_kills, NODES, seed=seed, replicas=2)
    held(told)
    assert told.count("rejected") == 0
    assert sum(replica.starts for replica in told.replicas) > 2


@pytest.mark.parametrize("seed", range(3))
def test_the_lease_is_lost_in_the_middle_and_taken_over(seed: int) -> None:
    async def plot(stage: Stage) -> None:
        first = stage.replicas[0]
        cutting = asyncio.ensure_future(_after(stage, _cut_off(stage, first, 40.0)))
        await burst(stage)
        await cutting

    told = stories.told(plot, NODES, seed=seed, replicas=2)
    held(told)
    assert told.count("rejected") == 0


async def foul(stage: Stage) -> None:
    """Everything at once: bad weather, kills, and pods that come and go."""
    storms = [asyncio.ensure_future(replica.proxy.storm()) for replica in stage.replicas]
    for number in range(PODS):
        stage.create(f"p-{number}", 5)
        await stage.clock.sleep(stage.draw.expovariate(1 / 5))
        if stage.draw.random() < 0.1:
            stage.draw.choice(stage.replicas).kill()
    await stage.clock.sleep(60.0)
    for storm in storms:
        storm.cancel()


@pytest.mark.parametrize("seed", range(2))
def test_in_foul_weather_no_pod_is_lost_or_bound_twice(seed: int) -> None:
    held(stories.told(foul, NODES, seed=seed, replicas=2, weather=FOUL, rest=900.0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 2000))
def test_a_campaign_of_foul_weather(seed: int) -> None:
    held(stories.told(foul, NODES, seed=seed, replicas=2, weather=FOUL, rest=900.0))


def test_a_node_that_goes_while_pods_are_on_their_way_gets_none_after_we_saw_it_go() -> None:
    async def plot(stage: Stage) -> None:
        for number in range(PODS):
            stage.create(f"p-{number}", 1)
            if number == PODS // 2:
                stage.delete_node("w-0")
            await asyncio.sleep(0)

    told = stories.told(plot, NODES)
    assert told.broken == []
    assert told.waiting == []


def test_pods_deleted_and_made_again_under_their_names_are_bound_once_each() -> None:
    async def plot(stage: Stage) -> None:
        for turns in (stage.draw.randrange(12) for _ in range(40)):
            stage.create("same", 5)
            for _ in range(turns):
                await asyncio.sleep(0)
            stage.delete("same", grace=0)
        stage.create("same", 5)

    told = stories.told(plot, NODES)
    assert told.broken == []
    assert told.waiting == []


async def burst_with_kills(stage: Stage) -> None:
    for number in range(PODS):
        stage.create(f"p-{number}", 5)
        for _ in range(stage.draw.randrange(6)):
            await asyncio.sleep(0)
        if stage.draw.random() < 0.3:
            stage.draw.choice(stage.replicas).kill()
            await stage.clock.sleep(stage.draw.uniform(0.0, 30.0))


async def _after(stage: Stage, what: object) -> None:
    """A few turns of the loop later: somewhere between two awaits of the scheduler."""
    for _ in range(stage.draw.randrange(200)):
        await asyncio.sleep(0)
    await what  # type: ignore[misc]


async def _cut_off(stage: Stage, replica: stories.Replica, seconds: float) -> None:
    stories.cut_off(replica)
    await stage.clock.sleep(seconds)
    replica.proxy.is_out = False
