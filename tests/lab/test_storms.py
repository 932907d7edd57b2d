"""A node that turns away whatever it is sent, while a controller replaces each pod at once: the storm guard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.kube import resources
from numalign.kube.resources import NODES, PODS
from numalign.lab.accounts import AnyObject
from numalign.scheduler import profiles
from tests.lab import live as lives
from tests.lab import metrics
from tests.lab.fleet import GPU
from tests.lab.fleet import ZONEWISE as NODE
from tests.lab.live import NAMESPACE, Live

NAME = "stormy"
SETS = resources.of("apps/v1", "replicasets", "ReplicaSet", AnyObject)
MOST = 5
"""Rejections in the ten seconds until a Node tells what has changed, with pauses of one, two, four and eight."""


@pytest.mark.slow
def test_a_node_that_turns_pods_away_is_not_sent_one_after_the_other(cluster: Live) -> None:
    before = metrics.rejections(cluster)
    with without_devices(cluster):
        cluster.run(cluster.client.create(SETS.within(NAMESPACE), replica_set()))
        until_offered(cluster, 0)
        rejected = metrics.rejections(cluster) - before
    until_one_runs(cluster)
    cluster.run(cluster.client.delete(SETS.at(NAME, NAMESPACE)))
    assert 1 <= rejected <= MOST


@contextlib.contextmanager
def without_devices(live: Live) -> Iterator[None]:
    """Neither the agent nor the Node says that they are gone. It begins when a kubelet has just told how many there
    are, which it does every ten seconds."""
    agent, plugin = live.node(NODE).parts["agent"], live.node(NODE).parts["device-plugin"]
    plugin.stop()
    until_offered(live, 0)
    plugin.start()
    until_offered(live, 3)
    agent.pause()
    plugin.stop()
    try:
        yield
    finally:
        plugin.start()
        agent.resume()


def until_offered(live: Live, count: int) -> None:
    async def offered() -> bool:
        allocatable = (await live.client.get(NODES.at(NODE))).allocatable
        return GPU in allocatable and allocatable[GPU].value == count

    live.awaited(offered, f"the Node does not tell of {count} devices")


def until_one_runs(live: Live) -> None:
    async def runs() -> bool:
        pods = await live.client.every(PODS.within(NAMESPACE))
        return any(each.status.phase == "Running" for each in pods if isinstance(each, Pod))

    live.awaited(runs, "no pod runs after the devices are back")


def replica_set() -> dict[str, Any]:
    labels = {"app": NAME}
    selector = {"kubernetes.io/hostname": NODE}
    inner = lives.guaranteed(NAME, 1, schedulerName=profiles.NAME, nodeSelector=selector)["spec"]
    inner["containers"][0]["resources"]["limits"][GPU] = "1"
    template = {"metadata": {"labels": labels}, "spec": inner}
    wanted = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": NAME}, "spec": wanted}
