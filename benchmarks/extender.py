"""How much does kube-scheduler lose by asking our extender?  Beside kube-scheduler alone, and beside the Go plugin.

5,000 nodes of two zones, pods whose zones matter. First the time that the extender's server takes for the two questions
about one pod, `filter` and `prioritize`, and for the one question that stands for both, `choose`: with the names of all
nodes, and with as many as kube-scheduler sends (it stops its own search after a tenth of a large cluster). Then, on the
real API server: a burst of pods for kube-scheduler with the extender, which binds them or leaves that to
kube-scheduler, for kube-scheduler alone, and for the scheduler that has NodeResourceTopologyMatch. Every burst with the
extender has one of its own, because no report says that the pods of an earlier burst have ended. NODES=500 is a quick
look, without goals."""

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from benchmarks import _contenders, _servers, table
from benchmarks._cluster import Cluster, node_name
from benchmarks._servers import Served
from benchmarks.scheduler import Bursts, note
from numalign.api.decode.structs import ENCODER
from numalign.api.nrt import normalise
from numalign.kube import clock
from numalign.kube.client import Client
from numalign.kube.clock import SystemClock
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Access, Identity, Login
from numalign.kube.transport.dial import Server
from numalign.kube.transport.tls import Contexts, Trust
from numalign.lab import build, controlplane
from numalign.process import certificates
from numalign.process.certificates import Validity
from numalign.process.http.messages import Request, Response
from numalign.scheduler.extender import stanza
from numalign.scheduler.extender.extender import ExtenderSettings
from numalign.scheduler.extender.stanza import ExtenderOptions
from numalign.scheduler.http import extenderserver
from numalign.scheduler.http.extenderserver import CHOOSE, FILTER, PRIORITIZE, ExtenderServer
from numalign.scheduler.main import Scheduler, Setup

NODES: Final = int(os.environ.get("NODES", "5000"))
PODS: Final = 600
PODS_REFERENCE: Final = 100
QUESTIONS: Final = 500
SHAPES: Final = 8
SAMPLED: Final = 10
"""The percentage of nodes after which kube-scheduler stops its search, in a cluster of 5,000 nodes."""
MOST_MILLISECONDS: Final = 3.0
OF_STOCK, OF_REFERENCE = 0.9, 5.0
RUNS: Final = 2
"""Of kube-scheduler with and without the extender, in turns; the better one of each counts."""
PATIENCE: Final = 120.0
CLUSTER: Final = Cluster(nodes=NODES, zones=2, resources=3)


def rows() -> Iterator[table.Row]:
    # Also where somebody else ends it, all processes are to be ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    yield from _at_the_server()
    programs = controlplane.programs()
    if programs is None:
        note(f"the bursts on the real API server are left out; {build.ADVICE}")
        return
    with _servers.real(programs) as served, clock.event_loop_runner() as runner:
        runner.run(_servers.fill(served.endpoint, CLUSTER))
        bursts = Bursts(served, runner)
        extended: dict[str, list[float]] = {"bind": [], "--no-bind": []}
        stock = []
        for _ in range(RUNS):
            for way, rates in extended.items():
                rates.append(_with_the_extender(served, bursts, binds=way == "bind"))
            stock.append(bursts.of(lambda _: _contenders.stock(served), PODS).rate)
        reference = bursts.of(lambda _: _contenders.reference(served), PODS_REFERENCE)
    for way, rates in extended.items():
        name = f"extender: real API server, choose and {way}: beside"
        yield _rate(f"{name} kube-scheduler alone", max(rates), max(stock), OF_STOCK)
        yield _rate(f"{name} NodeResourceTopologyMatch", max(rates), reference.rate, OF_REFERENCE)


def _with_the_extender(served: Served, bursts: Bursts, *, binds: bool) -> float:
    with _extending(served, binds=binds) as entry:
        return bursts.of(lambda _: _contenders.extended(served, entry), PODS).rate


def _rate(name: str, ours: float, peer: float, goal: float) -> table.Row:
    reached = goal if NODES >= 5000 else 0.0
    return table.Row(name=name, ours=ours, peer=peer, unit="1/s", goal=reached, higher_is_better=True)


# The questions about a pod


def _at_the_server() -> Iterator[table.Row]:
    with clock.event_loop_runner() as runner:
        server = runner.run(_filled())
        names = [node_name(number) for number in range(NODES)]
        for asked in (names, names[: NODES * SAMPLED // 100]):
            for verbs, question in (("filter + prioritize", _asked), ("choose", _chosen)):
                spent = [question(server, asked, number) for number in range(QUESTIONS)]
                found = 1000 * float(np.quantile(spent, 0.99))
                name = f"extender: {verbs}, {len(asked):,} of {NODES:,} nodes, p99"
                yield table.Row(name=name, ours=found, peer=MOST_MILLISECONDS, unit="ms")


async def _filled() -> ExtenderServer:
    real = SystemClock()
    access = Access(Server("127.0.0.1", 1), Login(auth.unchanging(Identity()), real), Contexts(Trust(), "nobody"))
    scheduler = Scheduler(Setup(schedules=False, extender=ExtenderSettings()), Client(access, clock=real))
    scheduler.cluster.engine.warm()
    for node, topology in CLUSTER.described():
        scheduler.cluster.node(node)
        scheduler.cluster.report(normalise.encode(topology), real.now())
    assert scheduler.extender is not None
    questions = extenderserver.questions(scheduler.cluster, scheduler.profiles, scheduler.config)
    return ExtenderServer(scheduler.extender, scheduler.metrics, real, questions, is_synced=lambda: True)


def _asked(server: ExtenderServer, names: list[str], number: int) -> float:
    """Seconds of both answers to kube-scheduler, from body to body. Time is the processor's, because others use the
    machine, too."""
    pod = msgspec.Raw(ENCODER.encode(CLUSTER.pod(number, number % SHAPES)))
    first = ENCODER.encode({"Pod": pod, "Nodes": None, "NodeNames": names})
    begun = time.process_time()
    passing = msgspec.json.decode(_answered(server, FILTER, first))["NodeNames"]
    spent = time.process_time() - begun
    second = ENCODER.encode({"Pod": pod, "Nodes": None, "NodeNames": passing})
    begun = time.process_time()
    _answered(server, PRIORITIZE, second)
    return spent + time.process_time() - begun


def _chosen(server: ExtenderServer, names: list[str], number: int) -> float:
    """Seconds of processor time of the one answer."""
    pod = msgspec.Raw(ENCODER.encode(CLUSTER.pod(number, number % SHAPES)))
    body = ENCODER.encode({"Pod": pod, "Nodes": None, "NodeNames": names})
    begun = time.process_time()
    _answered(server, CHOOSE, body)
    return time.process_time() - begun


def _answered(server: ExtenderServer, path: str, body: bytes) -> bytes:
    answer = server.answer(Request("POST", path.encode(), {}, body))
    assert isinstance(answer, Response)
    assert answer.code == 200
    return answer.body


# The process beside kube-scheduler


@contextlib.contextmanager
def _extending(served: Served, *, binds: bool) -> Iterator[dict[str, Any]]:
    """An extender that knows the cluster, and whose CPU bursts report; its entry in the configuration of
    kube-scheduler."""
    folder, port = served.folder, controlplane.free_port()
    issuer = certificates.authority("bench", Validity.of(datetime.now(UTC)))
    authority = folder / "extender-ca.crt"
    authority.write_text(issuer.certificate())
    for name, pair in (("server", issuer.issue("extender", ["127.0.0.1"])), ("client", issuer.issue_client("stock"))):
        (folder / f"{name}.crt").write_text(pair.certificate)
        (folder / f"{name}.key").write_text(pair.key)
    program = shutil.which("numalign", path=str(Path(sys.executable).parent)) or "numalign"
    words = (
        f"extender run --kubeconfig {served.kubeconfig} --port {port} --pages-port 0 --client-ca {authority}"
        f" --tls-certificate {folder}/server.crt --tls-key {folder}/server.key"
    )
    with served.log("extender").open("wb") as log:
        process = subprocess.Popen([program, *words.split()], stdout=log, stderr=log)
    served.pids["extender"] = process.pid
    try:
        url = f"https://127.0.0.1:{port}"
        _await(url, folder, authority)
        options = ExtenderOptions(
            url=url,
            authority=str(authority),
            certificate=str(folder / "client.crt"),
            key=str(folder / "client.key"),
            bind=binds,
            timeout="10s",
        )
        yield stanza.stanza(options)
    finally:
        del served.pids["extender"]
        process.terminate()
        process.wait(PATIENCE)


def _await(url: str, folder: Path, authority: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url + FILTER, b'{"Pod":{},"NodeNames":[]}', timeout=10, context=context).close()
            return
        time.sleep(0.2)
    raise RuntimeError("the extender does not answer")
