"""Everything at once: bad weather on every line, and blows that fall between any two awaits of anybody.

One plot for the fast tests, the campaign and the proof that the campaign would notice. What befalls the cluster is
drawn from the story's seed; pods come, go and come again under their names all the while. Nodes that were deleted are
there again at the end, so that every pod has a place."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator

from numalign.kubelet.machine import presets
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.nodes.specs import NodeSpec
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.embedded.faultproxy import Weather
from tests.embedded.schedulerreplicas import Books, Replica
from tests.embedded.schedulerstories import Stage, Told

MACHINE = presets.machine("2x16")
SETTINGS = nodes.settings(MACHINE, "single-numa-node")
NODES = [NodeSpec(name=f"w-{n}", machine=MACHINE, settings=SETTINGS) for n in range(6)]
PODS = 24
CPUS = 7
"""Of each pod: as many as six nodes of two zones take at two a zone, and not one more."""
OFTEN = 0.4
"""How often a blow follows the making of a pod."""
TURNS = 60


async def havoc(stage: Stage) -> None:
    storms = [asyncio.ensure_future(replica.proxy.storm()) for replica in stage.replicas]
    aside: list[asyncio.Task[None]] = []
    for number in range(PODS):
        stage.create(f"p-{number}", CPUS)
        if stage.draw.random() < OFTEN:
            await stage.turns(TURNS)
            aside.append(asyncio.ensure_future(_blow(stage)))
        await stage.clock.sleep(stage.draw.choice((0.0, stage.draw.expovariate(1 / 6))))
    await stage.clock.sleep(60.0)
    for storm in storms:
        storm.cancel()
    await asyncio.gather(*aside)
    _heal(stage)


async def _blow(stage: Stage) -> None:
    """Half of them fall while a binding is on its way."""
    blow = stage.draw.choice(BLOWS)
    if stage.draw.random() < 0.5:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_victim(stage).binding(), 60.0)
        await stage.turns(12)
    await blow(stage)


async def _kill(stage: Stage) -> None:
    _victim(stage).kill()


async def _stop(stage: Stage) -> None:
    _victim(stage).stop()


async def _lose_lease(stage: Stage) -> None:
    await _victim(stage).lose_lease(stage.draw.uniform(5.0, 60.0))


async def _cut_off(stage: Stage) -> None:
    await _victim(stage).cut_off(stage.draw.uniform(1.0, 40.0))


async def _deny(stage: Stage) -> None:
    await _victim(stage).deny(stage.draw.uniform(1.0, 40.0))


async def _restart_server(stage: Stage) -> None:
    await stage.restart_server(stage.draw.uniform(0.0, 20.0))


async def _freeze(stage: Stage) -> None:
    """The machine stands still; when it goes on, everything that was due meanwhile is due at once."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, virtualtime.VirtualTimeLoop)
    loop._jump(stage.draw.uniform(1.0, 30.0))


async def _delete_node(stage: Stage) -> None:
    """With what is on it, and with pods on their way to it, if there are any; sometimes it comes back at once."""
    there = set(stage.embedded.fleet.nodes)
    if len(there) < len(NODES) - 1:
        return
    name = stage.draw.choice(sorted(there.intersection(_victim(stage).places())) or sorted(there))
    stage.delete_node(name)
    await stage.turns(TURNS)
    if stage.draw.random() < 0.5 and name not in stage.embedded.fleet.nodes:
        stage.embedded.fleet.add(next(spec for spec in NODES if spec.name == name))


async def _make_again(stage: Stage) -> None:
    """A pod is deleted, and another one has its name at once."""
    name = f"p-{stage.draw.randrange(PODS)}"
    try:
        stage.delete(name, grace=0)
    except StatusError:
        return
    await stage.turns(4)
    stage.create(name, CPUS)


BLOWS: list[Callable[[Stage], Awaitable[None]]] = [
    _kill,
    _kill,
    _stop,
    _lose_lease,
    _cut_off,
    _deny,
    _restart_server,
    _freeze,
    _delete_node,
    _delete_node,
    _make_again,
]


def _victim(stage: Stage) -> Replica:
    """Who leads, most of the time."""
    leading = [replica for replica in stage.replicas if replica.leads]
    return leading[0] if leading and stage.draw.random() < 0.8 else stage.draw.choice(stage.replicas)


def _heal(stage: Stage) -> None:
    for spec in NODES:
        if spec.name not in stage.embedded.fleet.nodes:
            stage.embedded.fleet.add(spec)


def weather(seed: int) -> Weather:
    """From fair with a few clouds to hardly anything goes through."""
    chance = random.Random(f"{seed}/weather")
    calls, bindings, events = chance.uniform(0.02, 0.4), chance.uniform(0.02, 0.8), chance.uniform(0.0, 0.2)
    return Weather(calls=calls, bindings=bindings, events=events, silence=60.0)


def played(seed: int) -> Told:
    return stories.told(havoc, NODES, seed=seed, replicas=2, weather=weather(seed))


@contextlib.contextmanager
def in_haste() -> Iterator[None]:
    """Thousands of histories: what they log is not kept, and garbage is collected less often. Both took a third of the
    time. `played` with the seed of a history that failed tells the rest."""
    before = gc.get_threshold()
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        logging.disable(logging.NOTSET)


def found_in(seeds: Iterable[int]) -> dict[int, list[str]]:
    """By seed, what did not hold."""
    with in_haste():
        return {seed: found for seed in seeds if (found := complaints(played(seed)))}


def complaints(told: Told) -> list[str]:
    """Everything that did not hold."""
    return [
        *told.broken,
        *(f"{name} was lost" for name in told.waiting),
        *(f"{line.name} bounced off {line.node} at {line.at:g} s: {line.why}" for line in told.bounced),
        *(f"at rest: {books}" for books in told.books if books != Books(pods=len(told.living))),
    ]
