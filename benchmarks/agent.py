"""What does the agent cost on a node with 110 pods and a change every second?  Limits: 60 MB, 0.5 % of a core.

`numalign agent run` in a process of its own, on a machine of files with 192 CPUs, beside a kubelet that is sockets and
a checkpoint (`_node`), and the embedded API server over TLS in another process. Every change is looked at and written.
CPU time is the process's own, from the tenth second on: what others do on this machine matters little."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import _servers, _wire, table
from benchmarks._node import Node
from benchmarks._servers import NODES, Served

MEGABYTES: Final = 60.0
PERCENT: Final = 0.5
WARM_UP, SECONDS = 10, 60
NAME: Final = "node-0"
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Cost(msgspec.Struct, frozen=True):
    megabytes: float
    percent: float
    written: int


def rows() -> Iterator[table.Row]:
    cost = measured()
    yield table.Row(name="agent: memory, 110 pods, a change per second", ours=cost.megabytes, peer=MEGABYTES, unit="MB")
    yield table.Row(name="agent: share of a core, likewise", ours=cost.percent, peer=PERCENT, unit="%")


def measured(*, pods_socket: bool = True) -> Cost:
    # A unix socket's path may have 107 bytes.
    with _servers.embedded() as served, tempfile.TemporaryDirectory(prefix="na-") as folder:
        return asyncio.run(_measured(served, Node(Path(folder)), pods_socket=pods_socket))


async def _measured(served: Served, node: Node, *, pods_socket: bool) -> Cost:
    described = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
    await _wire.one(served.endpoint, served.endpoint.request("POST", NODES, described))
    async with node.served(pods_socket=pods_socket):
        with (served.folder / "agent.log").open("wb") as log, _started(served, node, log) as process:
            try:
                await _changes(node, WARM_UP)
                before, began = _cpu(process.pid), time.monotonic()
                await _changes(node, SECONDS)
                share = (_cpu(process.pid) - before) / (time.monotonic() - began)
                return Cost(_resident(process.pid), 100 * share, _writes(served))
            finally:
                process.terminate()


def _started(served: Served, node: Node, log: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "numalign.cli", "agent", "run", "--kubeconfig", str(served.kubeconfig)]
    command += ["--node-name", NAME, "--host-root", str(node.host)]
    return subprocess.Popen(command, stdout=log, stderr=log)  # type: ignore[call-overload,no-any-return]


async def _changes(node: Node, seconds: int) -> None:
    for _ in range(seconds):
        node.change()
        await asyncio.sleep(1)


def _cpu(process: int) -> float:
    """Seconds of the processor, those in the kernel included."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _resident(process: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1000


def _writes(served: Served) -> int:
    return served.log("agent").read_text().count("told")
