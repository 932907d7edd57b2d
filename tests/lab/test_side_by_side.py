"""Our scheduler and the reference, kube-scheduler with NodeResourceTopologyMatch, on nodes that our agent reports on.

To each the pods of the other are foreign."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.kube.resources import PODS, TOPOLOGIES, DeleteOptions
from numalign.lab.schedulers import REFERENCE
from numalign.scheduler import profiles
from tests.lab import live as lives
from tests.lab import loads, metrics, runtime
from tests.lab.fleet import PLAIN, RTE
from tests.lab.live import LOOK, NAMESPACE, PATIENCE, Live

OURS = profiles.NAME
BOTH = [OURS, REFERENCE]
IN_A_SECOND = DeleteOptions(grace_period_seconds=1)


@pytest.fixture
def cluster(cluster: Live) -> Live:
    """With a pod on every node that is used here, as any node of a cluster has: the reference never learns that
    foreign pods have left a node if no other one is there."""
    for node in (PLAIN, RTE):
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"resident-{node}"}, "spec": spec})
        cluster.settled(f"resident-{node}")
    return cluster


def pod(name: str, scheduler: str, cpu: int, node: str = PLAIN) -> dict[str, Any]:
    selector = {"kubernetes.io/hostname": node}
    return lives.guaranteed(name, cpu, schedulerName=scheduler, nodeSelector=selector, restartPolicy="Never")


def placed(live: Live, name: str, scheduler: str, cpu: int, node: str = PLAIN) -> Pod:
    """What the reference hears of a node wakes no pod that waits for it: such a pod is sent anew."""

    async def sent() -> Pod | None:
        await live.remove(name)
        await live.client.create(PODS.within(NAMESPACE), pod(name, scheduler, cpu, node))
        found = await decided(live, name)
        return found if found.spec.node_name else None

    if scheduler == REFERENCE:
        return live.awaited(sent, f"{name} is not placed")
    live.create(pod(name, scheduler, cpu, node))
    return live.settled(name)


async def decided(live: Live, name: str) -> Pod:
    async with asyncio.timeout(PATIENCE):
        while not loads.is_decided(found := await live.client.get(PODS.at(name, NAMESPACE))):
            await asyncio.sleep(LOOK)
    return found


def until_visible(live: Live, name: str, node: str = PLAIN) -> None:
    """The node's report speaks of it."""
    uid = live.pod(name).metadata.uid

    async def told() -> bool:
        topology = normalise.normalise(await live.client.get(TOPOLOGIES.at(node)))
        return uid in {each.uid for each in topology.facts.placements or ()}

    live.awaited(told, f"no report speaks of {name}")


def until_refused(live: Live, name: str) -> str:
    async def refused() -> str:
        found = await live.client.get(PODS.at(name, NAMESPACE))
        return next((each.message for each in found.status.conditions if each.status == "False"), "")

    return live.awaited(refused, f"{name} is not refused")


@pytest.mark.parametrize("scheduler", BOTH)
def test_a_pod_that_fits_no_zone_waits_until_another_one_has_gone(cluster: Live, scheduler: str) -> None:
    """The reference believes in what was freed once a report has the fingerprint that it expects."""
    for number in range(2):
        assert placed(cluster, f"half-{number}", scheduler, 10).status.phase == "Running"
        until_visible(cluster, f"half-{number}")
    cluster.create(pod("third", scheduler, 8))
    assert "0/" in until_refused(cluster, "third")
    cluster.run(cluster.client.delete(PODS.at("half-0", NAMESPACE), IN_A_SECOND))
    found = cluster.settled("third") if scheduler == OURS else placed(cluster, "third", scheduler, 8)
    assert found.status.phase == "Running"


def test_no_pod_is_turned_away_where_each_comes_after_the_last_one_is_visible(cluster: Live) -> None:
    phases = []
    for number, (scheduler, cpu) in enumerate([(OURS, 3), (REFERENCE, 5), (OURS, 7), (REFERENCE, 4), (OURS, 5)]):
        phases.append(placed(cluster, f"turn-{number}", scheduler, cpu).status.phase)
        until_visible(cluster, f"turn-{number}")
    assert phases == ["Running"] * 5
    for scheduler in BOTH:
        cluster.create(pod(f"last-{scheduler}", scheduler, 9))
        assert "0/" in until_refused(cluster, f"last-{scheduler}")


def test_in_a_race_every_pod_of_ours_that_is_turned_away_is_counted(cluster: Live) -> None:
    """Four fit, and both schedulers may believe at the same moment that the room is theirs."""
    before, names = metrics.rejections(cluster), [f"race-{number}" for number in range(8)]
    cluster.create(*(pod(name, BOTH[number % 2], 6) for number, name in enumerate(names)))
    for name in names:
        cluster.run(decided(cluster, name))

    async def running() -> int:
        pods = [await cluster.client.get(PODS.at(name, NAMESPACE)) for name in names]
        return sum(each.status.phase == "Running" for each in pods)

    # All may have to wait first, for the room that the pods of the test before leave.
    assert cluster.awaited(running, "no pod runs") <= 4

    async def counted() -> bool:
        pods = [await cluster.client.get(PODS.at(name, NAMESPACE)) for name in names[::2]]
        return metrics.rejections(cluster) - before == sum(each.status.phase == "Failed" for each in pods)

    assert cluster.awaited(counted, "not as many are counted as were turned away")


@pytest.mark.parametrize("last", BOTH)
@pytest.mark.parametrize("node", [PLAIN, pytest.param(RTE, marks=pytest.mark.slow)])
def test_a_pod_that_ended_and_is_still_listed_stalls_nobody(cluster: Live, node: str, last: str) -> None:
    """Kubelets list ended pods up to 1.33, and later ones if they are told to."""
    ended = placed(cluster, "ended", OURS, 12, node)
    cluster.run(runtime.end(cluster.node(node), ended.metadata.uid, {"main"}))

    async def succeeded() -> bool:
        return (await cluster.client.get(PODS.at("ended", NAMESPACE))).status.phase == "Succeeded"

    cluster.awaited(succeeded, "the pod does not end")
    assert placed(cluster, "other", REFERENCE if last == OURS else OURS, 12, node).status.phase == "Running"
    assert placed(cluster, "last", last, 12, node).status.phase == "Running"
