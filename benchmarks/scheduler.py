"""How many pods a second does the scheduler bind over HTTP?  Beside what a server takes, and beside Go schedulers.

5,000 nodes of two zones, pods whose zones matter, everything on this machine. On the real API server: a raw client that
writes a Binding and an Event per pod (the limit), bare binds, our scheduler, kube-scheduler, and the one that has
NodeResourceTopologyMatch; on the embedded server the first three. Then the memory of our process with 50,000 pods, and
what it does while nothing happens. Takes about ten minutes. NODES=500 is a quick look, without goals for rates."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import _bursts, _contenders, _servers, _wire, table
from benchmarks._bursts import Outcome
from benchmarks._cluster import Cluster, node_name
from benchmarks._contenders import Contender
from benchmarks._servers import Served
from numalign.kube import clock
from numalign.lab import build, controlplane
from numalign.placement.engine import Engine

NODES: Final = int(os.environ.get("NODES", "5000"))
PODS: Final = 3000
PODS_STOCK: Final = 600
PODS_REFERENCE: Final = 100
PODS_BESIDE: Final = 10 * NODES
"""That run already, for the question of memory."""
RUNS: Final = 2
"""Of bare binds, of the limit and of ours, in turns; the better one of each counts."""
OF_STOCK, OF_REFERENCE = 3.0, 20.0
MOST_MEGABYTES: Final = 600.0
MOST_IDLE: Final = 2.0
IDLE_SECONDS: Final = 20.0
CLUSTER: Final = Cluster(nodes=NODES, zones=2, resources=3)


class Goals(Struct, frozen=True):
    """Parts of what the raw client reaches."""

    of_the_limit: float = 0.0
    of_bare_binds: float = 0.0
    with_events: float = 0.0
    """Of the limit, until the last event is written."""
    recorded: float = 0.0
    """Of our own rate, with a recording."""


REAL: Final = Goals(of_the_limit=0.9, of_bare_binds=0.8, with_events=0.9, recorded=0.95)
# The embedded server takes a binding in so little time that the scheduler is what is measured, and not what it adds.
EMBEDDED: Final = Goals()


def rows() -> Iterator[table.Row]:
    # Also where somebody else ends it, all processes are to be ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # What a scheduler compiles at its very first start is not to be measured.
    Engine().warm()
    programs = controlplane.programs()
    if programs is None:
        note(f"the real API server and the Go schedulers are left out; {build.ADVICE}")
    else:
        yield from _on_the_real_one(_servers.real(programs))
    yield from _on_the_embedded_one(_servers.embedded())
    yield from _at_rest(_servers.embedded())


def _on_the_real_one(server: AbstractContextManager[Served]) -> Iterator[table.Row]:
    with server as served, clock.event_loop_runner() as runner:
        runner.run(_servers.fill(served.endpoint, CLUSTER))
        bursts = Bursts(served, runner)
        runs = bursts.in_turns()
        stock = bursts.of(lambda _: _contenders.stock(served), PODS_STOCK)
        reference = bursts.of(lambda _: _contenders.reference(served), PODS_REFERENCE)
    yield from _shared("real API server", runs, REAL)
    ours = best(runs.ours)
    yield _row("real API server: beside kube-scheduler", ours.rate, stock.rate, OF_STOCK)
    yield _row("real API server: beside NodeResourceTopologyMatch", ours.rate, reference.rate, OF_REFERENCE)


def _on_the_embedded_one(server: AbstractContextManager[Served]) -> Iterator[table.Row]:
    with server as served, clock.event_loop_runner() as runner:
        runner.run(_servers.fill(served.endpoint, CLUSTER))
        bursts = Bursts(served, runner)
        runs = bursts.in_turns()
    yield from _shared("embedded server", runs, EMBEDDED)


class Runs(Struct, frozen=True):
    bare: list[Outcome]
    limit: list[Outcome]
    ours: list[Outcome]
    recorded: list[Outcome]
    """Ours with a recording."""


def _shared(server: str, runs: Runs, goals: Goals) -> Iterator[table.Row]:
    bare, limit, ours = best(runs.bare), best(runs.limit), best(runs.ours)
    yield _row(f"{server}: beside Binding + Event, raw client", ours.rate, limit.rate, goals.of_the_limit)
    yield _row(f"{server}: beside bare binds", ours.rate, bare.rate, goals.of_bare_binds)
    mine, theirs = (max(run.rate_with_events for run in each) for each in (runs.ours, runs.limit))
    yield _row(f"{server}: until the last event, beside Binding + Event", mine, theirs, goals.with_events)
    yield _row(f"{server}: with a recording, beside without", best(runs.recorded).rate, ours.rate, goals.recorded)
    written = f"scheduler: {server}: events written for {ours.pods:,} pods"
    fewest = min(run.events for run in runs.ours)
    yield table.Row(name=written, ours=fewest, peer=ours.pods, unit="", higher_is_better=True)


def best(runs: list[Outcome]) -> Outcome:
    return max(runs, key=lambda run: run.rate)


def _row(name: str, ours: float, peer: float, goal: float) -> table.Row:
    reached = goal if NODES >= 5000 else 0.0
    return table.Row(name=f"scheduler: {name}", ours=ours, peer=peer, unit="1/s", goal=reached, higher_is_better=True)


class Bursts:
    """On one server, one after the other; each in a namespace of its own."""

    def __init__(self, served: Served, runner: asyncio.Runner) -> None:
        self._served, self._runner = served, runner
        self._count = 0

    def in_turns(self) -> Runs:
        runs = Runs([], [], [], [])
        for _ in range(RUNS):
            runs.bare.append(self.of(lambda where: _contenders.limit(self._served, where, NODES, bare=True), PODS))
            runs.limit.append(self.of(lambda where: _contenders.limit(self._served, where, NODES), PODS))
            runs.ours.append(self.of(lambda _: _contenders.ours(self._served), PODS))
            runs.recorded.append(self.of(lambda _: _contenders.ours(self._served, recorded=True), PODS))
        return runs

    def of(self, made: Callable[[str], Contender], pods: int) -> Outcome:
        """Who is made for a namespace."""
        self._count += 1
        namespace = f"burst-{self._count}"
        contender = made(namespace)
        outcome = self._runner.run(_bursts.burst(self._served, contender, CLUSTER, namespace, pods))
        note(f"{contender.name}: {outcome.told()}")
        return outcome


def _at_rest(server: AbstractContextManager[Served]) -> Iterator[table.Row]:
    with server as served, clock.event_loop_runner() as runner:
        runner.run(_servers.fill(served.endpoint, CLUSTER))
        megabytes, busy = runner.run(_resting(served))
    name = f"scheduler: process with {NODES:,} nodes and {PODS_BESIDE:,} pods"
    yield table.Row(name=f"{name}, most memory", ours=megabytes, peer=MOST_MEGABYTES, unit="MB")
    yield table.Row(name=f"{name}, CPU while nothing happens", ours=busy, peer=MOST_IDLE, unit="%")


async def _resting(served: Served) -> tuple[float, float]:
    endpoint, contender = served.endpoint, _contenders.ours(served)
    path = "/api/v1/namespaces/default/pods"
    made = (_bursts.pod(CLUSTER, number, contender.name, node_name(number % NODES)) for number in range(PODS_BESIDE))
    await _wire.every(endpoint, ((endpoint.request("POST", path, each),) for each in made))
    log = served.log(contender.name)
    async with _bursts.running(contender, log) as process:
        await _bursts.quiet(process, log)
        before = _bursts.cpu(process.pid)
        await asyncio.sleep(IDLE_SECONDS)
        busy = 100 * (_bursts.cpu(process.pid) - before) / IDLE_SECONDS
        return _peak(process.pid), busy


def _peak(pid: int) -> float:
    """Megabytes, the most the process has had so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def note(text: str) -> None:
    """Beside the table: what was measured beyond its numbers, and that something goes on."""
    print(f"scheduler: {text}", file=sys.stderr, flush=True)
