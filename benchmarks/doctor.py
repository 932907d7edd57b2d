"""How long does the doctor take for 5,000 nodes and 10,000 pods?  Limits: 20 s, and three times a bare list.

An embedded API server in a process of its own has the nodes, leases and reports of a simulated node, copied, and pods
on them. The doctor reads all of it page by page and judges it with every check. Beside it: the same client lists the
same nodes, reports and pods and does nothing with them."""

import asyncio
import multiprocessing
import random
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, Final

from benchmarks import _wire, table
from benchmarks._wire import Endpoint
from numalign.deploy.doctor import collect, diagnosis
from numalign.kube.access import kubeconfig
from numalign.kube.client import Client
from numalign.kube.clock import event_loop_runner
from numalign.kube.resources import LEASES, NODES, PODS, TOPOLOGIES
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.versions import Minor
from numalign.simulator import clock, virtualtime
from numalign.simulator import cluster as bootstrap
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Certificates
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree

NODE_COUNT: Final = 5_000
POD_COUNT: Final = 10_000
MOST_SECONDS: Final = 20.0
MOST_TIMES: Final = 3.0
RUNS: Final = 3
ONE: Final = "one"
LISTED: Final = (NODES, TOPOLOGIES, PODS, LEASES)
SETTINGS: Final = Settings(
    topology_policy="single-numa-node",
    cpu_policy="static",
    reserved_cpus=0b11,
    memory_policy="Static",
    reserved_memory=(MemoryReservation(0, {"memory": 1 << 30}),),
    reserved={"cpu": 2000, "memory": (1 << 30) - (100 << 20)},
    eviction_hard={"memory": 100 << 20},
    minor=Minor(1, 37),
)


def rows() -> Iterator[table.Row]:
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="numalign-bench-") as made:
        files = server.make_certificates(Path(made))
        ours, theirs = processes.Pipe()
        process = processes.Process(target=serve, args=(theirs, files), daemon=True)
        process.start()
        try:
            config = _wire.kubeconfig(Endpoint(ours.recv(), str(files.authority)), Path(made))
            with event_loop_runner() as runner:
                runs = [runner.run(measured(config)) for _ in range(RUNS)]
        finally:
            process.terminate()
            process.join()
    doctor, bare = (min(seconds) for seconds in zip(*runs, strict=True))
    name = f"doctor: {NODE_COUNT:,} nodes, {POD_COUNT:,} pods"
    yield table.Row(name=f"{name}, limit", ours=doctor, peer=MOST_SECONDS, unit="s")
    yield table.Row(name=f"{name}, beside a bare list", ours=doctor, peer=bare, unit="s", goal=1 / MOST_TIMES)


async def measured(config: Path) -> tuple[float, float]:
    async with Client(kubeconfig.access((str(config),))) as client:
        started = time.perf_counter()
        found = diagnosis.diagnose(await collect.observe(client))
        doctor = time.perf_counter() - started
        assert found.nodes == NODE_COUNT, found.nodes
        assert found.findings == (), found.findings[0]
        started = time.perf_counter()
        await asyncio.gather(*(client.every(each.everywhere()) for each in LISTED))
        return doctor, time.perf_counter() - started


def serve(pipe: Pipe, files: Certificates) -> None:
    """Until it is terminated."""
    trees = virtualtime.run(_simulated())
    with event_loop_runner() as runner:
        runner.run(_serve(pipe, files, trees))


async def _simulated() -> dict[str, Tree]:
    """A node, its lease and its report, as a simulated kubelet and agent write them."""
    when = virtualtime.clock(random.Random(1))
    spec = NodeSpec(name=ONE, machine=presets.machine("gpu-8"), settings=SETTINGS)
    async with bootstrap.running([spec], when, random.Random(1)) as embedded:
        await when.sleep(30)
        return {
            "node": embedded.api.get(resources.NODES, ONE),
            "lease": embedded.api.get(resources.LEASES, ONE, "kube-node-lease"),
            "report": embedded.api.get(crd.RESOURCE, ONE),
        }


async def _serve(pipe: Pipe, files: Certificates, trees: dict[str, Tree]) -> None:
    chance = random.Random(1)
    api = Api(clock.real(chance), chance, admission=admission)
    bootstrap.create_first_objects(api)
    for number in range(NODE_COUNT):
        _add(api, resources.NODES, trees["node"], f"node-{number}")
        status = Patch("merge", {"status": trees["node"]["status"]})
        api.patch(resources.NODES, f"node-{number}", "", status, subresource="status")
        _add(api, resources.LEASES, trees["lease"], f"node-{number}")
        _add(api, crd.RESOURCE, trees["report"], f"node-{number}")
    for number in range(POD_COUNT):
        _add(api, resources.PODS, _pod(number), f"pod-{number}")
    async with server.serve(api, server.ListenOptions(certificates=files)) as address:
        pipe.send(address.port)
        await asyncio.Event().wait()


def _add(api: Api, resource: resources.Resource, tree: Tree, name: str) -> None:
    metadata = {"name": name} | {
        key: tree["metadata"][key] for key in ("namespace", "labels") if key in tree["metadata"]
    }
    spec = {key: value for key, value in (tree.get("spec") or {}).items() if key != "taints"}
    api.create(resource, {**tree, "metadata": metadata} | ({"spec": spec} if "spec" in tree else {}), manager="kubelet")


def _pod(number: int) -> Tree:
    amounts = {"cpu": "2", "memory": "4Gi"}
    container: dict[str, Any] = {"name": "main", "image": "registry/app:1", "resources": {"limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "labels": {"app": f"app-{number % 200}"}},
        "spec": {"nodeName": f"node-{number % NODE_COUNT}", "containers": [container]},
    }
