"""A pod whose admission depends on the end of a terminating pod waits for a bounded time, and says for what."""

from __future__ import annotations

from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.trees import Tree
from tests.embedded.barecluster import Bare
from tests.embedded.test_scheduler_wakes import node, pod, report

SLOW = 600
"""Seconds of a grace period that no other pod waits for."""


def with_init_container(name: str, first: int, then: int) -> Tree:
    """The container reuses the CPUs of the init container, so it has to go to the same zone."""
    whole = pod(name, then)
    before = {**pod(name, first)["spec"]["containers"][0], "name": "before"}
    return {**whole, "spec": {**whole["spec"], "initContainers": [before]}}


def condition(tree: Tree) -> str:
    conditions = tree["status"].get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


async def contested(bare: Bare) -> None:
    """Zone 0 is full; when the terminating pod ends, it has two free CPUs. Zone 1 is empty."""
    for name, cpus in (("leaver", 2), ("stays", 6)):
        bare.create(pod(name, cpus, terminationGracePeriodSeconds=SLOW))
        await bare.clock.sleep(2.0)
        bare.set_status("default", name, phase="Running")
    await bare.clock.sleep(2.0)
    bare.api.delete(PODS, "leaver", "default")
    await bare.clock.sleep(2.0)
    assert bare.bound() == {"leaver": "n-0", "stays": "n-0"}


def cluster_of_one() -> Bare:
    bare = Bare()
    bare.create(node(0))
    bare.create(report(0, 8, 8))
    return bare


async def waits() -> tuple[str, str, str]:
    bare = cluster_of_one()
    async with bare.scheduler({}):
        await contested(bare)
        bare.create(with_init_container("p", 1, 5))
        await bare.clock.sleep(15.0)
        early, message = bare.bound()["p"], condition(bare.pods()["p"])
        await bare.clock.sleep(45.0)
        return early, message, bare.bound()["p"]


def test_it_waits_for_a_bounded_time_and_names_the_terminating_pod() -> None:
    early, message, late = virtualtime.run(waits())
    assert (early, late) == ("", "n-0")
    assert "depending on when terminating pods end: default/leaver" in message


async def goes_elsewhere() -> str:
    bare = cluster_of_one()
    async with bare.scheduler({}):
        await contested(bare)
        bare.create(node(1))
        bare.create(report(1, 8, 8))
        bare.create(with_init_container("p", 1, 5))
        await bare.clock.sleep(5.0)
        return bare.bound()["p"]


def test_it_is_bound_to_another_node_at_once() -> None:
    assert virtualtime.run(goes_elsewhere()) == "n-1"


async def room_is_made() -> tuple[str, str]:
    """The terminating pod ends, and the other one, too."""
    bare = cluster_of_one()
    async with bare.scheduler({}):
        await contested(bare)
        bare.create(with_init_container("p", 1, 5))
        await bare.clock.sleep(5.0)
        bare.set_status("default", "leaver", phase="Succeeded")
        await bare.clock.sleep(5.0)
        before = bare.bound()["p"]
        bare.set_status("default", "stays", phase="Succeeded")
        await bare.clock.sleep(10.0)
        return before, bare.bound()["p"]


def test_it_is_bound_when_it_is_sure_to_be_admitted() -> None:
    assert virtualtime.run(room_is_made()) == ("", "n-0")
