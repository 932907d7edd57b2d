"""How long until 20,000 pods of 7 kB are in an informer's store, and what do they weigh?  Limits: 1.5 s, 150 MB.

A server in a process of its own answers lists from prepared pages; the informer reads them in another one, so that its
memory is what the store, the pages on their way and the client cost above the idle interpreter. Beside it: how many
bindings per second one client gets answered over kept connections, with the limit being 5,000, the goal for the
server that is to store them."""

import asyncio
import gc
import multiprocessing
import resource
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

import msgspec

from benchmarks import _pods, table
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import binding
from numalign.kube.client import Client
from numalign.kube.clock import SystemClock, event_loop_runner
from numalign.kube.resources import PODS
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.watch.informer import Informer, Options

PODS_LISTED: Final = 20_000
BYTES_PER_POD: Final = 7_000
MOST_SECONDS: Final = 1.5
MOST_MEGABYTES: Final = 150.0
BINDINGS: Final = 10_000
AT_ONCE: Final = 32
BINDINGS_STORED: Final = 5_000.0
"""Per second, the goal for a server that stores them."""
RUNS: Final = 3


class Measured(msgspec.Struct, frozen=True):
    seconds: float
    megabytes: float
    bindings: float


def rows() -> Iterator[table.Row]:
    best = measured()
    name = f"client: {PODS_LISTED:,} pods of {BYTES_PER_POD // 1000} kB into the store"
    yield table.Row(name=f"{name}, time", ours=best.seconds, peer=MOST_SECONDS, unit="s")
    yield table.Row(name=f"{name}, memory", ours=best.megabytes, peer=MOST_MEGABYTES, unit="MB")
    yield table.Row(
        name=f"client: bindings, {AT_ONCE} at once",
        ours=best.bindings,
        peer=BINDINGS_STORED,
        unit="1/s",
        higher_is_better=True,
    )


def measured() -> Measured:
    """The best of a few runs, each of them in a new process."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    server = processes.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port = ours.recv()
        with processes.Pool(1, maxtasksperchild=1) as pool:
            runs = [pool.apply(measure, (port,)) for _ in range(RUNS)]
    finally:
        server.terminate()
        server.join()
    return Measured(
        seconds=min(run.seconds for run in runs),
        megabytes=min(run.megabytes for run in runs),
        bindings=max(run.bindings for run in runs),
    )


def measure(port: int) -> Measured:
    with event_loop_runner() as runner:
        return runner.run(_measured(port))


async def _measured(port: int) -> Measured:
    clock = SystemClock()
    access = Access(Server("127.0.0.1", port, secure=False), Login(auth.unchanging(Identity()), clock))
    async with Client(access) as client:
        gc.collect()
        idle, started = peak(), time.perf_counter()
        informer = Informer(client, PODS.everywhere(), lambda change: None, Options(initial_events=False))
        running = asyncio.create_task(informer.run())
        await informer.synced()
        seconds, weight = time.perf_counter() - started, peak() - idle
        assert len(informer.store) == PODS_LISTED
        running.cancel()
        return Measured(seconds, weight, await _bindings(client))


async def _bindings(client: Client) -> float:
    """Per second, by so many workers."""
    numbers = iter(range(BINDINGS))

    async def worker() -> None:
        for number in numbers:
            answer = await binding.bind(client, ObjectMeta(name=f"pod-{number}", namespace="default"), "node-1")
            assert answer == binding.DONE

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return BINDINGS / (time.perf_counter() - started)


def peak() -> float:
    """Megabytes, the most this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def serve(pipe: Pipe) -> None:
    """A server of one list and of bindings, until it is terminated."""
    with event_loop_runner() as runner:
        runner.run(_serve(pipe))


async def _serve(pipe: Pipe) -> None:
    pages = dict(prepared())
    server = await asyncio.get_running_loop().create_server(lambda: _Answers(pages), "127.0.0.1", 0)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


class _Answers(asyncio.Protocol):
    """Just enough of HTTP: every request comes in one piece, as our client sends it."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self._pages = pages

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        method, target = data.split(b" ", 2)[:2]
        if method == b"POST":
            return self._transport.write(BOUND)
        query = parse_qs(urlsplit(target.decode()).query)
        if "watch" in query:
            return self._transport.write(STREAM)
        self._transport.write(self._pages[query.get("continue", ["0"])[0]])


def prepared() -> Iterator[tuple[str, bytes]]:
    """Continue tokens and the answers to them."""
    size = 500
    for first in range(0, PODS_LISTED, size):
        after = str(first + size) if first + size < PODS_LISTED else ""
        items = [_pods.pod(number, BYTES_PER_POD) for number in range(first, min(first + size, PODS_LISTED))]
        meta = {"resourceVersion": "1", "continue": after}
        yield str(first), answer(200, msgspec.json.encode({"kind": "PodList", "metadata": meta, "items": items}))


def answer(code: int, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 {code} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


STATUS: Final = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
BOUND: Final = answer(201, STATUS)
STREAM: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
