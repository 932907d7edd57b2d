"""Whatever befalls the API server, the network or the scheduler: every pod is bound, once, and stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from numalign.kube.leader.lease import Election
from numalign.placement.decisions import Wake
from numalign.scheduler.bind.binder import Binder, BindResults
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.queue.queue import SchedulingQueue
from numalign.simulator.apiserver.storage import resources
from tests.embedded import schedulerhavoc as havoc
from tests.embedded import schedulerstories as stories
from tests.embedded.schedulerhavoc import CPUS, NODES, PODS
from tests.embedded.schedulerstories import Stage, Told

TURNS = 200
"""Of the loop, in which a burst is worked off."""


async def burst(stage: Stage) -> None:
    for number in range(PODS):
        stage.create(f"p-{number}", CPUS)
    await stage.clock.sleep(0.2)


def befallen(blow: Callable[[Stage], Awaitable[None]]) -> Callable[[Stage], Awaitable[None]]:
    """A burst, and somewhere in the middle of it a blow."""

    async def falling(stage: Stage) -> None:
        await stage.turns(TURNS)
        await blow(stage)

    async def plot(stage: Stage) -> None:
        fallen = asyncio.ensure_future(falling(stage))
        await burst(stage)
        await fallen

    return plot


def held(told: Told, pods: int = PODS) -> None:
    assert havoc.complaints(told) == []
    assert told.count("bound") == pods


def test_in_fair_weather_all_are_bound_and_none_is_turned_away() -> None:
    told = stories.told(burst, NODES)
    held(told)
    assert told.count("rejected") == 0
    assert told.count("started") == PODS


async def restart(stage: Stage) -> None:
    await stage.restart_server(stage.draw.uniform(1.0, 20.0))


async def kill(stage: Stage) -> None:
    stage.replicas[0].kill()


async def stop(stage: Stage) -> None:
    stage.replicas[0].stop()


async def lose_lease(stage: Stage) -> None:
    await stage.replicas[0].lose_lease(40.0)


async def cut_off(stage: Stage) -> None:
    await stage.replicas[0].cut_off(40.0)


async def deny(stage: Stage) -> None:
    await stage.replicas[0].deny(40.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("blow", [restart, kill, stop, lose_lease, cut_off, deny])
def test_a_blow_in_the_middle_leaves_every_pod_bound_once(blow: Callable[[Stage], Awaitable[None]], seed: int) -> None:
    told = stories.told(befallen(blow), NODES, seed=seed, replicas=2)
    held(told)
    assert told.count("rejected") == 0


async def kill_at_every_turn(stage: Stage) -> None:
    for number in range(PODS):
        stage.create(f"p-{number}", CPUS)
        await stage.turns(6)
        if stage.draw.random() < 0.3:
            stage.draw.choice(stage.replicas).kill()
            await stage.clock.sleep(stage.draw.uniform(0.0, 30.0))


@pytest.mark.parametrize("seed", range(3))
def test_replicas_are_killed_wherever_they_wait_and_others_take_over(seed: int) -> None:
    told = stories.told(kill_at_every_turn, NODES, seed=seed, replicas=2)
    held(told)
    assert told.count("rejected") == 0
    assert sum(replica.starts for replica in told.replicas) > 2


@pytest.mark.parametrize("seed", range(3))
def test_when_everything_goes_wrong_at_once_no_pod_is_lost_bound_twice_or_bounced(seed: int) -> None:
    assert havoc.complaints(havoc.played(seed)) == []


AT_A_TIME = 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 11_000, AT_A_TIME))
def test_a_campaign_of_everything_going_wrong(first: int) -> None:
    """10,000 histories, some at a time, so that workers share them."""
    assert havoc.found_in(range(first, first + AT_A_TIME)) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_new_leader_that_has_not_heard_of_the_last_bindings_does_not_bind_on_top_of_them(seed: int) -> None:
    async def plot(stage: Stage) -> None:
        (leader,) = (replica for replica in stage.replicas if replica.leads)
        denying = asyncio.ensure_future(leader.deny(5.0))
        await burst(stage)
        for replica in stage.replicas:
            if replica is not leader:
                replica.deafen()
        await denying
        while not any(pod["spec"].get("nodeName") for pod in stage.api.list(resources.PODS).items):
            await stage.clock.sleep(0.01)
        leader.kill()

    told = stories.told(plot, NODES, seed=seed, replicas=2)
    held(told)
    assert told.count("rejected") == 0


def test_a_node_that_goes_while_pods_are_on_their_way_gets_none_after_we_saw_it_go() -> None:
    async def plot(stage: Stage) -> None:
        for number in range(PODS):
            stage.create(f"p-{number}", 1)
            if number == PODS // 2:
                stage.delete_node("w-0")
            await asyncio.sleep(0)

    assert havoc.complaints(stories.told(plot, NODES)) == []


def test_pods_deleted_and_made_again_under_their_names_are_bound_once_each() -> None:
    async def plot(stage: Stage) -> None:
        for _ in range(40):
            stage.create("same", CPUS)
            await stage.turns(12)
            stage.delete("same", grace=0)
        stage.create("same", CPUS)

    assert havoc.complaints(stories.told(plot, NODES)) == []


# What the campaign is good for: each of these breaks one promise, and has to be noticed.


def no_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Election, "leads", lambda self, now: self.holder == self.identity)


def nobody_asked_again(patch: pytest.MonkeyPatch) -> None:
    """Whether the lease is ours and the node is there, in the moment in which a binding leaves."""
    patch.setattr(Binder, "_may_go", lambda self, bind: True)


def nodes_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindResults, "has_node", lambda self, name: True)


def failures_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulingQueue, "fail", lambda self, uid, now: self.done(uid))


def places_kept(patch: pytest.MonkeyPatch) -> None:
    """For pods that were not bound after all."""

    def forget(self: Cluster, uid: str) -> list[Wake]:
        self.assumed.pop(uid, None)
        return []

    patch.setattr(Cluster, "forget", forget)


def deaths_missed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cluster, "pod_gone", lambda self, pod, now: [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken", [no_fence, nobody_asked_again, nodes_for_ever, failures_forgotten, places_kept, deaths_missed]
)
def test_a_scheduler_that_breaks_a_promise_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert any(havoc.complaints(havoc.played(seed)) for seed in range(1000))
