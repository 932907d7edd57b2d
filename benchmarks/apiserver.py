"""How many creates and bindings per second does the embedded API server take, with 3 watchers?  Limit: 5,000 of both.

The server runs in a process of its own, with admission as a cluster has it. In another process workers send pods, then
bindings, over kept connections, while three watchers of all pods read what comes; the clock stops when every watcher
has seen every change."""

import asyncio
import multiprocessing
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any, Final, cast

import msgspec

from benchmarks import table
from numalign.kube.clock import event_loop_runner
from numalign.simulator import clock
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.storage.resources import NAMESPACES
from numalign.simulator.apiserver.verbs.api import Api

PODS: Final = 10_000
AT_ONCE: Final = 32
WATCHERS: Final = 3
PER_SECOND: Final = 5_000.0
RUNS: Final = 3
PATH: Final = "/api/v1/namespaces/default/pods"


class Measured(msgspec.Struct, frozen=True):
    creates: float
    bindings: float


def rows() -> Iterator[table.Row]:
    best = measured()
    for name, rate in (("creates", best.creates), ("bindings", best.bindings)):
        title = f"embedded API server: {name}, {WATCHERS} watchers"
        yield table.Row(name=title, ours=rate, peer=PER_SECOND, unit="1/s", higher_is_better=True)


def measured() -> Measured:
    """The best of a few runs, each on a server of its own."""
    processes = multiprocessing.get_context("spawn")
    runs = [_run(processes) for _ in range(RUNS)]
    return Measured(max(run.creates for run in runs), max(run.bindings for run in runs))


def _run(processes: Any) -> Measured:
    ours, theirs = processes.Pipe()
    process = processes.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        with event_loop_runner() as runner:
            return runner.run(_measured(ours.recv()))
    finally:
        process.terminate()
        process.join()


def serve(pipe: Pipe) -> None:
    """Until it is terminated."""
    with event_loop_runner() as runner:
        runner.run(_serve(pipe))


async def _serve(pipe: Pipe) -> None:
    chance = random.Random(1)
    api = Api(clock.real(chance), chance, admission=admission)
    api.create(NAMESPACES, {"metadata": {"name": "default"}})
    async with server.serve(api) as address:
        pipe.send(address.port)
        await asyncio.Event().wait()


async def _measured(port: int) -> Measured:
    watchers = [await _watcher(port) for _ in range(WATCHERS)]
    workers = [await _connected(port, Worker) for _ in range(AT_ONCE)]
    creates = await _rate(workers, watchers, lambda number: (PATH, pod(number)))
    bindings = await _rate(workers, watchers, lambda number: (f"{PATH}/pod-{number}/binding", binding(number)))
    return Measured(creates, bindings)


async def _rate(
    workers: list["Worker"], watchers: list["Watcher"], request: Callable[[int], tuple[str, dict[str, Any]]]
) -> float:
    """Per second, until all watchers have seen them all."""
    requests = [_post(*request(number)) for number in range(PODS)]
    waiting = iter(requests)
    seen: list[Awaitable[None]] = [watcher.events(PODS) for watcher in watchers]
    started = time.perf_counter()
    await asyncio.gather(*(worker.work(waiting) for worker in workers), *seen)
    return PODS / (time.perf_counter() - started)


def _post(path: str, body: dict[str, Any]) -> bytes:
    data = msgspec.json.encode(body)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


class Worker(asyncio.Protocol):
    """One request at a time, the next one as soon as the answer is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._answer = b""

    async def work(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._done = asyncio.get_running_loop().create_future()
        self._next()
        await self._done

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, ends, body = self._answer.partition(b"\r\n\r\n")
        length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
        if ends and len(body) == int(length):
            assert head.startswith(b"HTTP/1.1 201"), self._answer
            self._next()

    def _next(self) -> None:
        self._answer = b""
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        else:
            self._done.set_result(None)


class Watcher(asyncio.Protocol):
    """Counts events; reading them is somebody else's question."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._left = 0
        self._done: asyncio.Future[None] | None = None
        self.opened = asyncio.get_running_loop().create_future()

    async def events(self, count: int) -> None:
        self._left = count
        self._done = asyncio.get_running_loop().create_future()
        await self._done

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self.opened.set_result(None)
        # Bytes of an event may come in two pieces, so count its end, which is a single one.
        self._left -= data.count(b"\n\r")
        if self._left <= 0 and self._done is not None and not self._done.done():
            self._done.set_result(None)


async def _watcher(port: int) -> Watcher:
    watcher: Watcher = await _connected(port, Watcher)
    watcher.transport.write(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n")
    await watcher.opened
    return watcher


async def _connected(port: int, kind: Callable[[], Any]) -> Any:
    return (await asyncio.get_running_loop().create_connection(kind, "127.0.0.1", port))[1]


def pod(number: int) -> dict[str, Any]:
    amounts = {"cpu": str(1 + number % 8), "memory": f"{1 + number % 16}Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "labels": {"app": f"app-{number % 200}"}},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/main:v1",
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ]
        },
    }


def binding(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": f"pod-{number}"},
        "target": {"kind": "Node", "name": f"node-{number % 500}"},
    }
