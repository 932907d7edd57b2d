"""Two profiles of one scheduler on kubelets of the exact model: one looks at zones, the other at node totals only."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from numalign.api.schedulerconfig.plugins import ZONES
from numalign.kubelet.machine import presets
from numalign.scheduler import settings
from numalign.scheduler.main import NOTHING_SAID, Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests import nodes

MACHINE = presets.machine("2x16")
KUBELET = nodes.settings(MACHINE, "single-numa-node")
NODES = [NodeSpec(name=f"w-{number}", machine=MACHINE, settings=KUBELET) for number in range(3)]
PROFILES = [
    {"schedulerName": "numalign"},
    {"schedulerName": "totals", "plugins": {"multiPoint": {"disabled": [{"name": ZONES}]}}},
]


def pod(name: str, scheduler: str, cpus: int) -> Tree:
    wants = {"cpu": str(cpus), "memory": "1Gi"}
    container = {"name": "main", "image": "a:1", "resources": {"requests": wants, "limits": wants}}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": [container], "schedulerName": scheduler}}


def reasons(embedded: Cluster) -> Counter[str]:
    """By scheduler and how the pod fares."""
    found = embedded.api.list(PODS).items
    return Counter(
        f"{each['spec']['schedulerName']} {each['status'].get('reason', each['status']['phase'])}" for each in found
    )


async def played() -> tuple[Counter[str], list[str], Scheduler]:
    clock = virtualtime.clock(random.Random(1))
    setup = Setup(config=settings.read({**NOTHING_SAID, "profiles": PROFILES}, "test"), rng=random.Random(1))
    running = cluster.running(NODES, clock, random.Random(1), default_scheduler=False)
    async with running as embedded, embedded.scheduled_by(setup) as scheduler:
        await asyncio.sleep(10)
        for number in range(12):
            embedded.api.create(PODS, pod(f"wide-{number}", ("totals", "numalign")[number % 2], 10))
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        bound = [each["metadata"]["name"] for each in embedded.api.list(PODS).items if each["spec"].get("nodeName")]
        return reasons(embedded), bound, scheduler


def test_pods_of_the_profile_without_zones_may_be_rejected_and_those_of_the_other_never() -> None:
    fared, bound, scheduler = virtualtime.run(played())
    assert fared["totals TopologyAffinityError"] > 0
    assert fared["numalign TopologyAffinityError"] == 0
    assert fared["numalign Running"] > 0
    assert fared["numalign Pending"] > 0
    # A pod that is bound and not rejected counts in the totals of its node, once.
    assert scheduler.cluster.pods == len(bound) - fared["totals TopologyAffinityError"]
