"""Our scheduler and the reference, kube-scheduler with NodeResourceTopologyMatch, on nodes that our agent reports on.

To each the pods of the other are foreign."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api import nrt
from numalign.api.pod import Pod
from numalign.kube.resources import PODS, TOPOLOGIES
from numalign.kube.resources import of as resource_of
from numalign.lab.schedulers import REFERENCE
from numalign.lab.settling import Thing
from numalign.scheduler import profiles
from tests.lab import live as lives
from tests.lab import metrics, runtime
from tests.lab.fleet import LISTING, PLAIN
from tests.lab.live import NAMESPACE, Live

OURS = profiles.NAME
BOTH = [OURS, REFERENCE]
STORMY = "all-single-numa-node-container"
REPLICA_SETS = resource_of("apps/v1", "replicasets", "ReplicaSet", Thing)


def pod(name: str, scheduler: str, cpu: int, node: str = PLAIN) -> dict[str, Any]:
    selector = {"kubernetes.io/hostname": node}
    return lives.guaranteed(name, cpu, schedulerName=scheduler, nodeSelector=selector, restartPolicy="Never")


def placed(live: Live, name: str, scheduler: str, cpu: int, node: str = PLAIN) -> Pod:
    live.create(pod(name, scheduler, cpu, node))
    return live.settled(name)


def until_visible(live: Live, name: str, node: str = PLAIN) -> None:
    """The node's report speaks of it."""
    uid = live.pod(name).metadata.uid

    async def told() -> bool:
        topology = nrt.normalise(await live.client.get(TOPOLOGIES.at(node)))
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
    cluster.run(cluster.remove("half-0"))
    assert cluster.settled("third").status.phase == "Running"


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
    before = rejections(cluster)
    names = [f"race-{number}" for number in range(8)]
    cluster.create(*(pod(name, BOTH[number % 2], 6) for number, name in enumerate(names)))
    ours = {name for number, name in enumerate(names) if BOTH[number % 2] == OURS}

    async def decided() -> list[Pod]:
        pods = [await cluster.client.get(PODS.at(name, NAMESPACE)) for name in names]
        return pods if all(each.status.phase != "Pending" or each.status.conditions for each in pods) else []

    found = cluster.awaited(decided, "pods are not decided")
    running = [each for each in found if each.status.phase == "Running"]
    rejected = [each for each in found if each.status.phase == "Failed" and each.metadata.name in ours]
    assert running
    assert counted(cluster, before + len(rejected))


def rejections(live: Live) -> float:
    return metrics.of_scheduler(live).get("numalign_pods_rejected_total", 0)


def counted(live: Live, expected: float) -> bool:
    async def reached() -> bool:
        return rejections(live) == expected

    return live.awaited(reached, f"{rejections(live)} rejections are counted, and not {expected}")


@pytest.mark.parametrize("last", BOTH)
@pytest.mark.parametrize("node", [LISTING, "rte-single-numa-node-container"])
def test_a_pod_that_ended_and_is_still_listed_stalls_nobody(cluster: Live, node: str, last: str) -> None:
    """Kubelets list ended pods up to 1.33, and later ones if they are told to."""
    ended = placed(cluster, "ended", OURS, 12, node)
    cluster.run(runtime.end(cluster.node(node), ended.metadata.uid, {"main"}))

    async def succeeded() -> bool:
        return (await cluster.client.get(PODS.at("ended", NAMESPACE))).status.phase == "Succeeded"

    cluster.awaited(succeeded, "the pod does not end")
    assert placed(cluster, "other", REFERENCE if last == OURS else OURS, 12, node).status.phase == "Running"
    assert placed(cluster, "last", last, 12, node).status.phase == "Running"
