"""What do 5,000 simulated nodes cost in one process?  Limits: 1,500 MB, and one core to keep them all going.

Every node is a gpu-8 machine that runs two pods, renews its lease every ten seconds, tells its status every five
minutes and publishes its topology as our agent does. They run in virtual time, so the CPU time of this process over
the time that went by for them is how much of a core they take in real time. The API server in the process counts."""

import asyncio
import multiprocessing
import random
import resource
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from benchmarks import table
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import Settings
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, NAMESPACES, PODS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.nodes.fleet import Fleet
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec

NODES: Final = 5_000
PODS_PER_NODE: Final = 2
MOST_MEGABYTES: Final = 1_500.0
MOST_CORES: Final = 1.0
SETTLING: Final = 30.0
"""Seconds until every node has registered, published and started its pods."""
WATCHED: Final = 120.0
RUNS: Final = 1


class Measured(msgspec.Struct, frozen=True):
    megabytes: float
    cores: float


def rows() -> Iterator[table.Row]:
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        runs = [pool.apply(measure) for _ in range(RUNS)]
    name = f"nodes: {NODES:,} with {PODS_PER_NODE} pods each"
    memory, cores = min(run.megabytes for run in runs), min(run.cores for run in runs)
    yield table.Row(name=f"{name}, memory", ours=memory, peer=MOST_MEGABYTES, unit="MB")
    yield table.Row(name=f"{name}, kept going", ours=cores, peer=MOST_CORES, unit="cores")


def measure() -> Measured:
    return virtualtime.run(_measured())


async def _measured() -> Measured:
    chances = random.Random(1)
    clock = virtualtime.clock(chances)
    api = Api(clock, chances)
    for namespace in ("default", "kube-node-lease"):
        api.create(NAMESPACES, {"metadata": {"name": namespace}})
    api.create(CUSTOMRESOURCEDEFINITIONS, crd.crd())
    fleet = Fleet(api, clock, chances)
    running = asyncio.create_task(fleet.run())
    _fill(fleet, api)
    await asyncio.sleep(SETTLING)
    before = time.process_time()
    await asyncio.sleep(WATCHED)
    cores = (time.process_time() - before) / WATCHED
    assert sum(len(node.pods) for node in fleet.nodes.values()) == NODES * PODS_PER_NODE
    assert fleet.refused == 0
    running.cancel()
    return Measured(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, cores)


def _fill(fleet: Fleet, api: Api) -> None:
    machine = presets.machine("gpu-8")
    settings = Settings(topology_policy="restricted", cpu_policy="static", reserved={"cpu": 2000})
    for number in range(NODES):
        fleet.add(NodeSpec(name=f"node-{number}", machine=machine, settings=settings))
        for place in range(PODS_PER_NODE):
            api.create(PODS, pod(f"pod-{number}-{place}", f"node-{number}"))


def pod(name: str, node: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "2"}
    asked = {"requests": amounts, "limits": amounts}
    container = {"name": "main", "image": "registry.example/main:v1", "resources": asked}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
    }
