"""API servers to measure schedulers on, each in processes of its own: the real one, and the embedded one.

Both serve over TLS on loopback and are given the same nodes and reports, over HTTP. Nodes are objects only: no kubelet
is behind them, nobody reports again, and nothing but schedulers, and who measures them, talks to the server."""

import asyncio
import multiprocessing
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import _wire
from benchmarks._cluster import Cluster
from benchmarks._wire import Endpoint
from numalign.api.decode import structs
from numalign.api.nrt import normalise
from numalign.kube.clock import event_loop_runner
from numalign.lab import controlplane
from numalign.lab.controlplane import ServerBinaries
from numalign.simulator import clock
from numalign.simulator import cluster as bootstrap
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Certificates
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.nodes.publisher import crd

NODES = "/api/v1/nodes"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Served(msgspec.Struct, frozen=True):
    endpoint: Endpoint
    kubeconfig: Path
    folder: Path
    pids: dict[str, int]

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def real(programs: ServerBinaries) -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="numalign-bench-") as made:
        folder = Path(made)
        with controlplane.running(folder, programs) as found:
            endpoint = Endpoint(found.port, str(found.authority), found.token)
            yield Served(endpoint, _wire.kubeconfig(endpoint, folder), folder, found.pids)


@contextmanager
def embedded() -> Iterator[Served]:
    processes = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="numalign-bench-") as made:
        folder = Path(made)
        files = server.make_certificates(folder)
        ours, theirs = processes.Pipe()
        process = processes.Process(target=serve, args=(theirs, files), daemon=True)
        process.start()
        try:
            endpoint = Endpoint(ours.recv(), str(files.authority))
            pids = {"server": process.pid or 0}
            yield Served(endpoint, _wire.kubeconfig(endpoint, folder), folder, pids)
        finally:
            process.terminate()
            process.join()


def serve(pipe: Pipe, files: Certificates) -> None:
    """Until it is terminated."""
    with event_loop_runner() as runner:
        runner.run(_serve(pipe, files))


async def _serve(pipe: Pipe, files: Certificates) -> None:
    chance = random.Random(1)
    api = Api(clock.real(chance), chance, admission=admission)
    bootstrap.create_first_objects(api)
    async with server.serve(api, server.ListenOptions(certificates=files)) as address:
        pipe.send(address.port)
        await asyncio.Event().wait()


async def fill(endpoint: Endpoint, cluster: Cluster) -> None:
    """With nodes and their reports."""
    await _define(endpoint)
    await _wire.every(endpoint, (_node(endpoint, cluster, number) for number in range(cluster.nodes)))


async def _define(endpoint: Endpoint) -> None:
    try:
        await _wire.one(endpoint, endpoint.request("POST", DEFINITIONS, crd.crd()))
    except _wire.Refused as refused:
        if not str(refused).startswith("409"):
            raise
    while not await _is_served(endpoint):
        await asyncio.sleep(0.1)


async def _is_served(endpoint: Endpoint) -> bool:
    try:
        await _wire.one(endpoint, endpoint.request("GET", REPORTS))
    except _wire.Refused:
        return False
    return True


def _node(endpoint: Endpoint, cluster: Cluster, number: int) -> tuple[bytes, ...]:
    node, report = cluster.node(number), normalise.encode(cluster.topology(number))
    name = node.metadata.name
    described: dict[str, Any] = msgspec.to_builtins(node, enc_hook=structs.encodable)
    described |= {"apiVersion": "v1", "kind": "Node"}
    described["metadata"]["labels"] = {"kubernetes.io/hostname": name}
    return (
        endpoint.request("POST", NODES, described),
        # New nodes are tainted until a controller sees them ready; there is none.
        endpoint.request("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}, "application/merge-patch+json"),
        endpoint.request("POST", REPORTS, structs.encode(report)),
    )
