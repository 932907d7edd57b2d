"""A burst of waiting pods, and how long somebody takes to bind them all.

A scheduler is started and follows the cluster while pods are made; the Lease that it needs is held back until it has
nothing left to read. The clock runs from the first pod that is seen bound to the last one, for everybody by the same
watch; then the events are counted. Everything is taken away again, for the next one to find the same cluster."""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import _wire
from benchmarks._cluster import Cluster
from benchmarks._contenders import Contender
from benchmarks._servers import Served
from benchmarks._wire import Endpoint
from numalign.api.decode import structs

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
MERGE = "application/merge-patch+json"
NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
PATIENCE = 600.0
QUIET = 0.05
"""The part of a core below which a process has nothing to do."""
BUSY = 0.1
"""Seconds of the processor's time after which a process has begun: quick machines need 0.26 for 5,000 nodes."""
SHAPES = 8
LOG_SHOWN = 2000
NO_MORE = 3.0
"""Seconds without a new event after which there are no more."""
LOOK = 0.05


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    pods: int
    seconds: float
    """From the first pod that was bound to the last."""
    until_told: float
    """From the first pod that was bound to the last event."""
    events: int
    cpu: dict[str, float]
    """Seconds of CPU by process, until all pods were bound."""
    cpu_with_events: dict[str, float]
    """Until the last event was written."""

    @property
    def rate(self) -> float:
        return (self.pods - 1) / self.seconds

    @property
    def rate_with_events(self) -> float:
        return self.events / self.until_told

    def told(self) -> str:
        return (
            f"{self.pods} pods in {self.seconds:.2f} s ({self.rate:,.0f}/s), {self.events} events after "
            f"{self.until_told:.2f} s; us of CPU per pod: {self._each(self.cpu)}; with events: "
            f"{self._each(self.cpu_with_events)}"
        )

    def _each(self, cpu: dict[str, float]) -> str:
        return ", ".join(f"{name} {1e6 * spent / self.pods:,.0f}" for name, spent in cpu.items())


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


class _Seen(msgspec.Struct, frozen=True):
    object: _Pod


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    remaining_item_count: int = 0


class _Counted(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw]


SEEN = msgspec.json.Decoder(_Seen)


class Observer:
    """Sees pods of the namespace get their nodes."""

    def __init__(self, namespace: str, expected: int) -> None:
        self.namespace, self.expected = namespace, expected
        self.nodes: dict[str, str] = {}
        self.first = self.last = 0.0
        self.problem = ""

    def take(self, line: bytes) -> None:
        pod = SEEN.decode(line).object
        name, node = pod.metadata.name, pod.spec.node_name
        if not node:
            return
        if name not in self.nodes:
            self.last = time.perf_counter()
            self.first = self.first or self.last
        if self.nodes.setdefault(name, node) != node:
            self.problem = f"{name} was bound twice"


async def burst(served: Served, contender: Contender, cluster: Cluster, namespace: str, pods: int) -> Outcome:
    endpoint = served.endpoint
    await _wire.one(endpoint, endpoint.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
    pods_path, log = f"/api/v1/namespaces/{namespace}/pods", served.log(contender.name)
    made = [pod(cluster, number, contender.name) for number in range(pods)]
    creates = [(endpoint.request("POST", pods_path, each),) for each in made]
    try:
        if not contender.waits:
            await _wire.every(endpoint, creates)
            return await _observed(served, contender, Observer(namespace, pods), None)
        await _hold(endpoint, contender.name)
        async with running(contender, log) as process:
            await quiet(process, log)
            await _wire.every(endpoint, creates)
            await quiet(process, log)
            return await _observed(served, contender, Observer(namespace, pods), process)
    finally:
        gone = [(endpoint.request("DELETE", f"{pods_path}/{each['metadata']['name']}", NOW),) for each in made]
        with contextlib.suppress(_wire.Refused):
            await _wire.every(endpoint, gone)


async def _observed(
    served: Served, contender: Contender, observer: Observer, waiting: subprocess.Popen[bytes] | None
) -> Outcome:
    """Of who has been waiting, or of who starts now."""
    endpoint, pids = served.endpoint, dict(served.pids)
    watch = f"/api/v1/namespaces/{observer.namespace}/pods?watch=1&fieldSelector=spec.nodeName%21%3D"
    async with _wire.following(endpoint, [watch], observer.take), _who(waiting, contender, served) as process:
        pids[contender.name] = process.pid
        before = {name: cpu(pid) for name, pid in pids.items()}
        if waiting is not None:
            await _release(endpoint, contender.name)
        await _all_bound(observer, process, served.log(contender.name))
        spent = {name: cpu(pid) - before[name] for name, pid in pids.items()}
        events, told = await _events(endpoint, observer)
        spent_told = {name: cpu(pid) - before[name] for name, pid in pids.items()}
    return Outcome(
        pods=observer.expected,
        seconds=observer.last - observer.first,
        until_told=told - observer.first,
        events=events,
        cpu=spent,
        cpu_with_events=spent_told,
    )


@asynccontextmanager
async def _who(
    waiting: subprocess.Popen[bytes] | None, contender: Contender, served: Served
) -> AsyncIterator[subprocess.Popen[bytes]]:
    if waiting is not None:
        yield waiting
        return
    async with running(contender, served.log(contender.name)) as started:
        yield started


async def _all_bound(observer: Observer, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(observer.nodes) < observer.expected:
        await asyncio.sleep(0.05)
        if observer.problem or process.poll() or time.monotonic() > deadline:
            bound = f"{len(observer.nodes)} of {observer.expected} pods bound"
            raise RuntimeError(f"{bound}; {observer.problem or log.read_text()[-LOG_SHOWN:]}")


async def _events(endpoint: Endpoint, observer: Observer) -> tuple[int, float]:
    """How many there are once no more come, and when the last one was seen. Only counted: to list them all again and
    again would take the server as long as to write them."""
    path = f"/apis/events.k8s.io/v1/namespaces/{observer.namespace}/events?limit=1"
    asked, count, at = endpoint.request("GET", path), 0, time.perf_counter()
    caller: _wire.Caller = await _wire.connected(endpoint, _wire.Caller, endpoint.context())
    while count < observer.expected and time.perf_counter() - at < NO_MORE:
        found = msgspec.json.decode(await caller.sent(asked), type=_Counted)
        if (seen := len(found.items) + found.metadata.remaining_item_count) > count:
            count, at = seen, time.perf_counter()
        await asyncio.sleep(LOOK)
    caller.transport.abort()
    return count, at


@asynccontextmanager
async def running(contender: Contender, log: Path) -> AsyncIterator[subprocess.Popen[bytes]]:
    with log.open("ab") as said:
        process = subprocess.Popen(contender.command, stdout=said, stderr=said)
        try:
            yield process
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)


async def quiet(process: subprocess.Popen[bytes], log: Path, seconds: float = 2.0) -> None:
    """Until the process has done something, and then nothing for so long."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        before = cpu(process.pid)
        await asyncio.sleep(seconds)
        spent = cpu(process.pid)
        if spent > BUSY and spent - before < QUIET * seconds and process.poll() is None:
            return
    raise RuntimeError(f"it ended, or does not get quiet: {log.read_text()[-LOG_SHOWN:]}")


def cpu(pid: int) -> float:
    """Seconds that the process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _hold(endpoint: Endpoint, name: str) -> None:
    """Nobody else leads before it is released."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    spec = {"holderIdentity": "benchmark", "leaseDurationSeconds": 3600, "acquireTime": moment, "renewTime": moment}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
    try:
        await _wire.one(endpoint, endpoint.request("POST", LEASES, lease))
    except _wire.Refused:
        await _wire.one(endpoint, endpoint.request("PATCH", f"{LEASES}/{name}", {"spec": spec}, MERGE))


async def _release(endpoint: Endpoint, name: str) -> None:
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
    await _wire.one(endpoint, endpoint.request("PATCH", f"{LEASES}/{name}", {"spec": spec}, MERGE))


def pod(cluster: Cluster, number: int, scheduler: str, node: str = "") -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(cluster.pod(number, number % SHAPES), enc_hook=structs.encodable)
    made |= {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number}"}}
    made["spec"] |= {"schedulerName": scheduler} | ({"nodeName": node} if node else {})
    for container in made["spec"]["containers"]:
        container["image"] = "registry.example/main:v1"
    return made
