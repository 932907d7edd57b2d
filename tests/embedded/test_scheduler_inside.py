"""A look inside the running scheduler: pages over TLS, stories, and decisions that come out the same elsewhere."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from numalign.kube.client import Client
from numalign.kube.leader import leading
from numalign.kubelet.machine import presets
from numalign.process import serve
from numalign.process.serve import PageRequest, Pages
from numalign.scheduler import main
from numalign.scheduler.explain import replay
from numalign.scheduler.explain.replay import ReplayResult
from numalign.scheduler.http import authz
from numalign.scheduler.http import pages as serving
from numalign.scheduler.main import Scheduler, Setup
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.snapshot import dump as dumping
from numalign.scheduler.snapshot import files, restore, snapshot
from numalign.scheduler.snapshot.snapshot import Snapshot
from numalign.simulator import clock as clocks
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import EVENTS, PODS
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.specs import NodeSpec
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.unit.kube import certificates

MACHINE = presets.machine("2x16")
Plot = Callable[[Cluster, Scheduler, Client], Coroutine[Any, Any, Any]]


def specs(policy: str = "single-numa-node", count: int = 3) -> list[NodeSpec]:
    return [NodeSpec(name=f"w-{n}", machine=MACHINE, settings=nodes.settings(MACHINE, policy)) for n in range(count)]


@asynccontextmanager
async def running(policy: str, seed: int) -> AsyncIterator[tuple[Cluster, Scheduler, Client]]:
    clock = virtualtime.clock(random.Random(seed))
    async with AsyncExitStack() as stack:
        embedded = await stack.enter_async_context(cluster.running(specs(policy), clock, random.Random(seed)))
        client = await stack.enter_async_context(Client(embedded.access(), clock=clock))
        election = leading.election("numalign", "kube-system", identity="me")
        scheduler = Scheduler(Setup(instance="me", rng=random.Random(seed)), client, election)
        task = asyncio.ensure_future(scheduler.run())
        stack.push_async_callback(ended, task)
        await clock.sleep(12.0)
        yield embedded, scheduler, client


async def ended(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def told(plot: Plot, policy: str = "single-numa-node", seed: int = 1) -> Any:
    async def tell() -> Any:
        async with running(policy, seed) as (embedded, scheduler, client):
            return await plot(embedded, scheduler, client)

    return virtualtime.run(tell())


def create(embedded: Cluster, name: str, cpus: int) -> None:
    embedded.api.create(PODS, stories.pod(name, cpus))


def dumped(scheduler: Scheduler) -> Snapshot:
    return files.read(files.packed(b"".join(files.pieces(dumping.taken(scheduler)))), "dump")


def watched(scheduler: Scheduler) -> list[bytes]:
    """A dump after every attempt, before anything else happens."""
    dumps, step = list[bytes](), scheduler.cycle.step

    def stepped(queued: QueuedPod) -> None:
        step(queued)
        dumps.append(b"".join(files.pieces(dumping.taken(scheduler))))

    scheduler.cycle.step = stepped  # type: ignore[method-assign]
    return dumps


@pytest.mark.parametrize("policy", ["single-numa-node", "restricted", "best-effort", "none"])
@pytest.mark.parametrize("seed", range(2))
def test_every_decision_comes_out_the_same_offline(policy: str, seed: int) -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> list[bytes]:
        draw, dumps = random.Random(seed), watched(scheduler)
        for number in range(16):
            create(embedded, f"p-{number}", draw.choice([1, 3, 5, 9, 20]))
            await asyncio.sleep(draw.choice([0.0, 0.01, 1.0, 7.0]))
        await asyncio.sleep(60.0)
        return dumps

    dumps = told(plot, policy, seed)
    assert len(dumps) >= 16
    assert [again for again in map(repeated, dumps) if not again.agrees] == []


def repeated(dump: bytes) -> ReplayResult:
    """The latest decision of it."""
    taken = files.read(dump, "dump")
    assert taken.state is not None
    return replay.repeated(taken, taken.state.decisions[-1].pod)


def test_a_pod_that_waits_gets_the_same_sentence_and_a_fresh_look_at_the_cluster_agrees() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> None:
        create(embedded, "large", 24)
        await asyncio.sleep(5.0)
        again = replay.repeated(dumped(scheduler), "default/large")
        assert again.agrees
        assert "cannot align container" in again.message
        plain = replay.repeated(await snapshot.taken(client), "default/large")
        assert (plain.message, plain.agrees) == (again.message, None)

    told(plot)


def test_a_bound_pod_may_be_asked_about_once_more() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> None:
        for number in range(12):
            create(embedded, f"p-{number}", 5)
        await asyncio.sleep(30.0)
        for number in range(12):
            again = replay.repeated(dumped(scheduler), f"default/p-{number}")
            assert again.node
            assert again.zones

    told(plot)


def test_a_snapshot_of_the_api_server_says_what_it_lacks() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> None:
        create(embedded, "p", 5)
        await asyncio.sleep(5.0)
        made = restore.restored(await snapshot.taken(client))
        assert (made.cluster.nodes, made.cluster.pods) == (3, 1)
        assert all("the cluster has no such resource" in problem for problem in made.problems)

    told(plot)


def test_a_pod_has_its_whole_story_by_one_key() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> list[str]:
        for number in range(7):
            create(embedded, f"p-{number}", 9)
        await asyncio.sleep(20.0)
        embedded.api.delete(PODS, next(pod["metadata"]["name"] for pod in bound(embedded)), "default", grace=0)
        await asyncio.sleep(60.0)
        (story,) = dumping.state(scheduler, "default/p-6")["histories"]
        return [line["what"] for line in story["lines"]]

    lines = told(plot)
    assert lines[:2] == ["queued", "unschedulable"]
    assert lines[-4:] == ["node selected", "bound", "binding confirmed", "started by the kubelet"]


def bound(embedded: Cluster) -> list[Any]:
    return [pod for pod in embedded.api.list(PODS).items if pod["spec"].get("nodeName")]


def test_nodes_tell_their_zones_and_how_sure_they_are() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> None:
        create(embedded, "p", 5)
        await asyncio.sleep(30.0)
        pages = Pages(serving.pages(scheduler, main.defaults(), None))
        answer = await pages.answer(PageRequest(method="GET", path="/debug/state", query={"nodes": ""}))
        tenants = [each for node in json.loads(answer.body)["nodes"] for each in node["tenants"]]
        assert [(each["name"], each["source"]) for each in tenants] == [("default/p", "observed")]
        nobody = dumping.state(scheduler, node="nobody")["node"]
        assert nobody == {"name": "nobody", "isThere": False, "pods": []}

    told(plot)


def test_who_leads_is_an_event_on_the_lease() -> None:
    async def plot(embedded: Cluster, scheduler: Scheduler, client: Client) -> list[tuple[str, str]]:
        found = embedded.api.list(EVENTS).items
        return [
            (each["message"], each["involvedObject"]["kind"]) for each in found if each["reason"] == "LeaderElection"
        ]

    assert told(plot) == [("me became leader", "Lease")]


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's side, and a client's who trusts it."""
    chain, authority = tmp_path / "chain", tmp_path / "authority"
    chain.write_text(certificates.SERVER_KEY + certificates.SERVER)
    authority.write_text(certificates.AUTHORITY)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(chain)
    return ours, ssl.create_default_context(cafile=str(authority))


CALLS = {
    "health": ("GET /healthz", "", 200),
    "nobody": ("GET /metrics", "", 403),
    "a page that is not there": ("GET /nothing", "", 404),
    "a wrong token": ("GET /metrics", "wrong", 401),
    "the right one": ("GET /metrics", "admin", 200),
    "a dump": ("GET /debug/dump", "admin", 200),
    "no such page": ("GET /nothing", "admin", 404),
    "a method that nobody needs": ("DELETE /metrics", "admin", 405),
}


@pytest.mark.parametrize("call, token, status", CALLS.values(), ids=CALLS)
def test_over_tls_only_those_get_in_whom_the_api_server_knows(
    call: str, token: str, status: int, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def ask() -> bytes:
        async with AsyncExitStack() as stack:
            here = cluster.running([], clocks.real(random.Random(1)), random.Random(1))
            embedded = await stack.enter_async_context(here)
            client = await stack.enter_async_context(Client(embedded.access()))
            told = serving.pages(Scheduler(Setup(instance="x"), client), main.defaults(), None)
            served = serve.serving(Pages(told, authz.guard(client)), ("127.0.0.1", 0), tls[0])
            port = await stack.enter_async_context(served)
            return await first_line(port, tls[1], f"{call} HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n")

    assert int(asyncio.run(ask()).split()[1]) == status


async def first_line(port: int, context: ssl.SSLContext, sent: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(sent.replace("Authorization: Bearer \r\n", "").encode())
    line = await reader.readline()
    writer.close()
    return line
