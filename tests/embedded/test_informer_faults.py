"""Behind a proxy that resets, stalls, cuts, refuses and repeats, an informer's store becomes what the server has.

Handlers are told of each object in turn and of each change once, and no deletion is missed. Thousands of seconds pass
in virtual time; a short run goes over sockets in real time."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

import pytest
from msgspec import Struct

from numalign.kube.client import Client
from numalign.kube.request import EVERYTHING, Selection
from numalign.kube.resources import PODS
from numalign.kube.transport import dial
from numalign.kube.transport.dial import Server
from numalign.kube.transport.transport import Limits
from numalign.kube.watch.informer import Informer, Options
from numalign.simulator import clock, cluster, virtualtime
from numalign.simulator.apiserver.http import server
from tests.embedded import underfaults
from tests.embedded.faultproxy import CALLS, STREAMS, Proxy, Weather
from tests.embedded.underfaults import HERE, Ears, Traffic
from tests.unit.kube import clocks

SELECTIONS = (EVERYTHING, EVERYTHING, Selection(labels="app=red"), Selection(fields="spec.nodeName=node-1"))


class Pace(Struct, frozen=True):
    """Rounds of bad weather, and seconds: of each, between bursts of writes, and until all has to be well after it."""

    rounds: int
    weather: float
    bursts: float
    patience: float


SHORT = Pace(2, 0.6, 0.02, 25.0)
# A stream that fell silent is noticed after ten minutes at the latest.
BRISK = Weather(calls=0.2, events=0.03, outages=0.4, outage=0.1, delay=0.1)


class HastyClock(clocks.FastClock):
    speed = 200.0


async def lived(client: Client, proxy: Proxy, traffic: Traffic, options: Options, pace: Pace) -> int:
    """An informer lives through it all; the number of changes that it told."""
    ears = Ears(traffic.states)
    informer = Informer(client, PODS.everywhere(), ears, options)
    running = asyncio.create_task(informer.run())
    for _ in range(pace.rounds):
        with underfaults.ended(proxy.storm(), traffic.run(pace.bursts)):
            await asyncio.sleep(pace.weather)
        proxy.calm()
        async with asyncio.timeout(pace.patience):
            while ears.versions() != traffic.there(options.selection):
                await asyncio.sleep(pace.patience / 1_000)
                assert not running.done(), running.exception()
        assert {id(each) for each in informer.store} == {id(each) for each in ears.known.values()}
    running.cancel()
    await proxy.close()
    return ears.told


def chosen(chance: Random) -> Options:
    return Options(
        selection=chance.choice(SELECTIONS),
        page=chance.choice((2, 500)),
        resync=chance.choice((None, None, 120.0)),
        initial_events=chance.random() < 0.5,
    )


async def weathered(seed: int) -> Counter[str]:
    """Thousands of seconds in virtual time; what was told, and what befell the informer."""
    chance = Random(seed)
    time = virtualtime.clock(chance)
    api = underfaults.served(time, chance, watch_cache_size=chance.choice((6, 60, 10_000)))
    weather = Weather(calls=chance.uniform(0, 0.6), events=chance.uniform(0, 0.2), outages=chance.uniform(30, 600))
    proxy = Proxy(HERE, underfaults.inside(api), chance, weather)
    pace = Pace(4, 500.0, chance.uniform(0.5, 20), 700.0)
    async with Client(underfaults.access(HERE, proxy.dial, time), clock=time) as client:
        told = await lived(client, proxy, Traffic(api, chance), chosen(chance), pace)
    return Counter({**proxy.met, "told": told})


def campaign(seeds: range) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        met.update(virtualtime.run(weathered(seed)))
    return met


def test_a_store_converges_through_thousands_of_seconds_of_faults() -> None:
    met = campaign(range(8))
    assert met["told"] > 1_000


@pytest.mark.slow
def test_a_store_converges_whatever_the_seed() -> None:
    met = campaign(range(1_000, 1_400))
    assert set(met) >= {*CALLS, *STREAMS, "outage"}


async def in_a_cluster(seed: int) -> int:
    """Beside controllers that write and delete too."""
    chance = Random(seed)
    async with cluster.running((), virtualtime.clock(chance), chance) as embedded:
        underfaults.furnish(embedded.api)
        access = embedded.access()
        proxy = Proxy(access.server, access.dial, chance, Weather())
        access.dial = proxy.dial
        async with Client(access, clock=embedded.clock) as client:
            return await lived(client, proxy, Traffic(embedded.api, chance), Options(), Pace(2, 500.0, 5.0, 700.0))


def test_a_store_converges_in_a_whole_cluster() -> None:
    assert virtualtime.run(in_a_cluster(1)) > 100


async def over_sockets(seed: int) -> int:
    chance = Random(seed)
    api = underfaults.served(clock.real(chance), chance, watch_cache_size=60)
    async with server.serve(api) as address:
        proxy = Proxy(Server(address.host, address.port, secure=False), dial.dial, chance, BRISK)
        async with proxy.served() as port:
            access = underfaults.access(Server("127.0.0.1", port, secure=False), dial.dial, clock.real(chance))
            async with Client(access, Limits(call_seconds=0.5), clock=HastyClock()) as client:
                return await lived(client, proxy, Traffic(api, chance), chosen(chance), SHORT)


@pytest.mark.parametrize("seed", range(3))
def test_a_store_converges_over_sockets(seed: int) -> None:
    assert asyncio.run(over_sockets(seed)) > 10


@pytest.mark.slow
def test_a_store_converges_over_sockets_whatever_the_seed() -> None:
    assert all(asyncio.run(over_sockets(seed)) for seed in range(100, 130))
