"""`numalign agent run` as people type it, beside a kubelet that is a socket and files: it tells, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import podresources
from tests.embedded import clusters
from tests.embedded.clusters import Up
from tests.embedded.test_scheduler_process import free_port, page
from tests.unit.agent import machine_trees
from tests.unit.agent.podresources_server import FakeKubelet, serving

NODE = "worker-1"
REPORT = f"/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/{NODE}"
CONFIG = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = CONFIG + 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n'
Process = asyncio.subprocess.Process


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("clusters"), "--nodes 1 --reports none") as found:
        assert found.call("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})[0] == 201
        yield found


@pytest.fixture
def host() -> Iterator[Path]:
    """The path of a unix socket may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="numalign-") as name:
        root = machine_trees.preset("2x16", Path(name))
        kubelet = root / "var/lib/kubelet"
        (kubelet / podresources.SOCKET).parent.mkdir(parents=True)
        (kubelet / "config.yaml").write_text(STATIC)
        yield root


def holding(*cpus: int) -> FakeKubelet:
    pod = {"name": "web", "namespace": "default", "containers": [{"name": "main", "cpus": list(cpus)}]}
    return FakeKubelet(pod, allocatable={"cpus": list(range(1, 32))})


@contextlib.asynccontextmanager
async def agent(up: Up, host: Path, *options: str) -> AsyncIterator[Process]:
    """Runs in the block; what is left of it afterwards is ended."""
    words = clusters.numalign(f"agent run --node-name {NODE} --host-root {host} --period 2")
    environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
    process = await asyncio.create_subprocess_exec(
        *words, *options, env=environment, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def free(up: Up) -> list[int] | None:
    code, report = up.call("GET", REPORT)
    return None if code != 200 else [_cpus(zone) for zone in report["zones"]]


def _cpus(zone: dict[str, Any]) -> int:
    return int(next(each["available"] for each in zone["resources"] if each["name"] == "cpu"))


async def awaited(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(clusters.PATIENCE):
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(clusters.LOOK)


def played(host: Path, kubelet: FakeKubelet, story: Callable[[Path], Awaitable[None]]) -> None:
    async def main() -> None:
        socket = host / "var/lib/kubelet" / podresources.SOCKET
        async with serving(socket, kubelet.service()):
            await story(socket)

    asyncio.run(main())


def test_it_tells_what_the_kubelet_says_and_a_signal_ends_it_in_order(up: Up, host: Path) -> None:
    async def story(_: Path) -> None:
        async with agent(up, host) as process:
            await awaited(lambda: free(up) == [13, 16])
            process.send_signal(signal.SIGTERM)
            said = (await asyncio.wait_for(process.communicate(), 10))[1]
            assert process.returncode == 0
            assert "Published NodeResourceTopology" in said.decode()
            assert "Traceback" not in said.decode()

    played(host, holding(1, 2), story)


@pytest.mark.parametrize("mode", ["rte", "nfd"])
def test_it_finds_the_socket_where_it_is_told_to_and_writes_as_it_is_told(up: Up, host: Path, mode: str) -> None:
    async def story(socket: Path) -> None:
        elsewhere = socket.rename(host / "elsewhere.sock")
        async with agent(up, host, "--mode", mode, "--podresources-socket", str(elsewhere)):
            await awaited(lambda: free(up) == [12, 16])
        names = [each["name"] for each in up.call("GET", REPORT)[1]["attributes"]]
        assert set(names) <= {
            "nodeTopologyPodsFingerprint",
            "nodeTopologyPodsFingerprintMethod",
            "topologyManagerPolicy",
            "topologyManagerScope",
        }

    played(host, holding(1, 2, 3), story)


def test_a_kubelet_that_starts_again_is_followed_and_pages_say_how_it_stands(up: Up, host: Path) -> None:
    async def story(socket: Path) -> None:
        port = free_port()
        async with agent(up, host, "--port", str(port)):
            await awaited(lambda: free(up) == [14, 16])
            await awaited(lambda: page(port, "/readyz").startswith("ok"))
            async with serving(socket, holding(16, 17).service()):
                await awaited(lambda: free(up) == [15, 14])
            await awaited(lambda: "podresources_errors_total" in page(port, "/metrics"))

    played(host, holding(1), story)


def test_the_collector_takes_the_report_of_a_node_that_goes_and_a_signal_ends_it_in_order(up: Up) -> None:
    nodes, reports = "/api/v1/nodes", REPORT.removesuffix(f"/{NODE}")
    report = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "zones": []}
    metadata = {"metadata": {"name": "leaving"}}
    assert [up.call("POST", path, tree)[0] for path, tree in ((nodes, metadata), (reports, report | metadata))] == [
        201,
        201,
    ]

    async def story() -> None:
        port = free_port()
        words = clusters.numalign(f"agent gc --kubeconfig {up.kubeconfig} --port {port} --grace 0 --interval 1")
        process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        await awaited(lambda: page(port, "/healthz") == "ok\n")
        await asyncio.to_thread(up.call, "DELETE", f"{nodes}/leaving")
        await awaited(lambda: "gc_deleted_total 1" in page(port, "/metrics"))
        process.send_signal(signal.SIGTERM)
        said = (await asyncio.wait_for(process.communicate(), 10))[0]
        assert (process.returncode, said.decode()) == (0, "leaving: deleted\n")

    asyncio.run(story())
    assert up.call("GET", f"{reports}/leaving")[0] == 404
