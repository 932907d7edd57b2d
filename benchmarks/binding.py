"""How many creates and bindings per second does our client get from the embedded API server, over TLS?  Limit: 5,000.

The server has a process of its own, with admission as a cluster has it, and a certificate of its own authority, which
the client checks. Beside it stands the same client against a server that stores nothing and gives one fixed answer,
which is what TLS, HTTP and the client allow: the ratio says what storing costs. Where nginx is installed, it gives the
fixed answer too. The last row repeats the bindings among ten times as many stored pods: they should not matter."""

import asyncio
import multiprocessing
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Final, cast

import msgspec

from benchmarks import apiserver, client, table
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import binding, request
from numalign.kube.client import Client
from numalign.kube.clock import SystemClock, event_loop_runner
from numalign.kube.resources import PODS
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.tls import Contexts, Trust
from numalign.simulator import clock
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Certificates
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.verbs.api import Api

PODS_BOUND: Final = 5_000
PODS_BESIDE: Final = 50_000
"""Stored before, for the question of how it grows."""
AT_ONCE: Final = 32
PER_SECOND: Final = 5_000.0
STORING: Final = 0.4
"""The least part of what the fixed answer allows that is left when every binding is stored."""
GROWTH: Final = 0.75
RUNS: Final = 3
NGINX: Final = """
daemon off; worker_processes 1; error_log stderr crit; pid nginx.pid;
events {{ worker_connections 256; }}
http {{ access_log off; keepalive_requests 1000000; server {{
  listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};
  location / {{ default_type application/json; return 201 '{answer}'; }} }} }}
"""


Serving = Callable[[], AbstractContextManager[int]]
"""A server to be, and the port that it will have."""


class Measured(msgspec.Struct, frozen=True):
    creates: float
    bindings: float


def rows() -> Iterator[table.Row]:
    with tempfile.TemporaryDirectory() as folder:
        made = server.make_certificates(Path(folder))
        yield from _rows(made, Path(folder))


def _rows(made: Certificates, folder: Path) -> Iterator[table.Row]:
    kinds: dict[str, Serving] = {
        "stored": lambda: _process(made, serve_embedded),
        "fixed": lambda: _process(made, serve_fixed),
        "crowded": lambda: _process(made, serve_crowded),
    }
    program = shutil.which("nginx")
    if program is not None:
        kinds["nginx"] = lambda: _nginx(program, made, folder)
    best = _best(made, kinds)
    stored = best["stored"]
    yield _row("creates in the embedded server", stored.creates, PER_SECOND)
    yield _row("bindings in the embedded server", stored.bindings, PER_SECOND)
    for name, title in (("fixed", "a fixed answer"), ("nginx", "nginx's fixed answer")):
        if name in best:
            yield _row(f"bindings, beside {title}", stored.bindings, best[name].bindings, goal=STORING)
    yield _row(f"bindings, among {PODS_BESIDE:,} pods", best["crowded"].bindings, stored.bindings, goal=GROWTH)


def _row(name: str, ours: float, peer: float, goal: float = 1.0) -> table.Row:
    title = f"binding: over TLS, {name}"
    return table.Row(name=title, ours=ours, peer=peer, unit="1/s", goal=goal, higher_is_better=True)


def _best(made: Certificates, kinds: dict[str, Serving]) -> dict[str, Measured]:
    """Of a few runs, each on a server of its own; the kinds take turns, so that a busy moment meets them all."""
    runs: dict[str, list[Measured]] = {name: [] for name in kinds}
    for _ in range(RUNS):
        for name, served in kinds.items():
            with served() as port:
                runs[name].append(_measured(made, port))
    return {
        name: Measured(max(run.creates for run in each), max(run.bindings for run in each))
        for name, each in runs.items()
    }


@contextmanager
def _process(made: Certificates, serve: Callable[[Pipe, Certificates], None]) -> Iterator[int]:
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=serve, args=(theirs, made), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


@contextmanager
def _nginx(program: str, made: Certificates, folder: Path) -> Iterator[int]:
    port = _free_port()
    words = {"certificate": made.certificate, "key": made.key, "answer": client.STATUS.decode(), "port": port}
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(**words))
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(file)])
    try:
        while process.poll() is None and not _is_open(port):
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _measured(made: Certificates, port: int) -> Measured:
    with event_loop_runner() as runner:
        return runner.run(_rates(made, port))


async def _rates(made: Certificates, port: int) -> Measured:
    login = Login(auth.unchanging(Identity()), SystemClock())
    contexts = Contexts(Trust(data=made.authority.read_bytes()), "benchmark")
    async with Client(Access(Server("127.0.0.1", port), login, contexts)) as ours:

        async def create(number: int) -> None:
            await ours.sender.call(request.create(PODS.within("default"), apiserver.pod(number)))

        async def bind(number: int) -> None:
            named = ObjectMeta(name=f"pod-{number}", namespace="default")
            assert (await binding.bind(ours, named, f"node-{number % 500}")) == binding.DONE

        return Measured(await _rate(create), await _rate(bind))


async def _rate(call: Callable[[int], Awaitable[None]]) -> float:
    """Per second, by so many workers."""
    numbers = iter(range(PODS_BOUND))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return PODS_BOUND / (time.perf_counter() - started)


def serve_embedded(pipe: Pipe, made: Certificates) -> None:
    with event_loop_runner() as runner:
        runner.run(_serve(pipe, made, beside=0))


def serve_crowded(pipe: Pipe, made: Certificates) -> None:
    with event_loop_runner() as runner:
        runner.run(_serve(pipe, made, beside=PODS_BESIDE))


async def _serve(pipe: Pipe, made: Certificates, beside: int) -> None:
    chance = random.Random(1)
    api = Api(clock.real(chance), chance, admission=admission)
    for namespace in ("default", "crowded"):
        api.create(resources.NAMESPACES, {"metadata": {"name": namespace}})
    for number in range(beside):
        tree = apiserver.pod(number)
        tree["metadata"]["namespace"] = "crowded"
        api.create(resources.PODS, tree)
    async with server.serve(api, server.ListenOptions(certificates=made)) as address:
        pipe.send(address.port)
        await asyncio.Event().wait()


def serve_fixed(pipe: Pipe, made: Certificates) -> None:
    with event_loop_runner() as runner:
        runner.run(_serve_fixed(pipe, made))


async def _serve_fixed(pipe: Pipe, made: Certificates) -> None:
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(FixedAnswer, "127.0.0.1", 0, ssl=made.context())
    pipe.send(listening.sockets[0].getsockname()[1])
    await listening.serve_forever()


class FixedAnswer(asyncio.Protocol):
    """Just enough of HTTP: every request comes in one piece, as our client sends it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(client.BOUND)
