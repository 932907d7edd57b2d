"""Hosts an embedded cluster in real time and serves it over HTTP until a signal ends it.

`numalign cluster up` calls `host` in a process of its own. The folder of the cluster holds its kubeconfig. Where our
scheduler runs in the cluster, its pages are served too, to clients that have the token of the kubeconfig."""

import asyncio
import logging
import math
import os
import random
import secrets
import signal
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.kube.clock import event_loop_runner
from numalign.process import privatefile, serve
from numalign.process.serve import PageRequest, PageResponse
from numalign.scheduler import profiles
from numalign.scheduler.http import authz, pages
from numalign.scheduler.http.serving import MountScheduler
from numalign.scheduler.main import Scheduler
from numalign.simulator import clock, cluster, registry, schedulers, trees, virtualtime
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Address, ListenOptions
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.registry import RunningCluster, ServedScheduler
from numalign.simulator.scenarios import play
from numalign.simulator.scenarios.play import Stage
from numalign.simulator.scenarios.scenario import Scenario

LOG: Final = logging.getLogger(__name__)
LONGEST_WAIT: Final = 20.0
LOOK: Final = 0.1
MOST_NAMED: Final = 10
"""Nodes without a report that the log names."""


class HostedCluster(Struct, frozen=True, kw_only=True):
    """The cluster to run, and how it is served."""

    name: str
    nodes: tuple[NodeSpec, ...]
    words: str
    scenario: Scenario | None = None
    """The scenario to play once the cluster is up."""
    fast_forward: bool = False
    """Plays the scenario in virtual time first; the cluster then continues in real time from its end."""
    scheduler: str = DEFAULT_SCHEDULER
    default_scheduler: bool = True
    """Whether default-scheduler runs, which sees node totals only."""
    zone_aware_scheduler: bool = False
    """Whether our scheduler runs in the same process, under its own name."""
    port: int = 0
    secure: bool = True
    """Serves TLS and requires a token, which only the kubeconfig has."""
    seed: int = 1
    mounted: Mapping[str, MountScheduler] = {}
    """By path, what else is served beside the pages of our scheduler."""


def host(hosted: HostedCluster, announced: Callable[[RunningCluster], None] = lambda running: None) -> None:
    """Returns when a signal ends the cluster. Raises AlreadyRuns if a cluster of this name is up.

    `announced` is called once the cluster serves."""
    with registry.held(hosted.name) as place, _runner(hosted) as runner:
        runner.run(_host(hosted, place, announced))


def _runner(hosted: HostedCluster) -> asyncio.Runner:
    if hosted.scenario is None or not hosted.fast_forward:
        return event_loop_runner()
    # Virtual time ends about now. Whole seconds, as the default start has: timestamps round the same way.
    lasts = timedelta(seconds=math.ceil(hosted.scenario.lasts))
    return virtualtime.runner(datetime.now(UTC).replace(microsecond=0) - lasts)


async def _host(hosted: HostedCluster, place: Path, announced: Callable[[RunningCluster], None]) -> None:
    ended = asyncio.Event()
    for what in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(what, ended.set)
    made = server.make_certificates(place) if hosted.secure else None
    token = secrets.token_urlsafe(24) if hosted.secure else ""
    listening = ListenOptions(port=hosted.port, certificates=made, token=token)
    authority = made.authority.read_text() if made else ""
    async with _staged(hosted, authority) as stage, AsyncExitStack() as stack:
        served = [ServedScheduler(DEFAULT_SCHEDULER, "node totals only")] if hosted.default_scheduler else []
        if stage.zone_aware is not None:
            served.append(await stack.enter_async_context(_pages(stage.zone_aware, listening, hosted, place)))
        async with server.serve(stage.cluster.api, listening) as address:
            file = _write_kubeconfig(place, hosted.name, address, authority, token)
            await reported(stage.cluster)
            running = _running(hosted, address, file, served)
            registry.announce(place, running)
            LOG.info("Serving embedded cluster name=%s url=%s (%s)", hosted.name, address.url, hosted.words)
            announced(running)
            playing_on = asyncio.create_task(_play(hosted, stage.cluster))
            await ended.wait()
            playing_on.cancel()


@asynccontextmanager
async def _staged(hosted: HostedCluster, authority: str) -> AsyncIterator[Stage]:
    if hosted.scenario is not None and hosted.fast_forward:
        moving = virtualtime.clock(random.Random(f"{hosted.seed}/clock"))
        async with play.staged(hosted.scenario, hosted.scheduler, hosted.seed, moving, authority) as stage:
            _log_refused(await play.perform(hosted.scenario, stage.cluster, hosted.scheduler, hosted.seed))
            virtualtime.continue_in_real_time()
            yield stage
        return
    chances = random.Random(hosted.seed)
    running = cluster.running(
        hosted.nodes, clock.real(chances), chances, authority=authority, default_scheduler=hosted.default_scheduler
    )
    async with running as embedded, AsyncExitStack() as stack:
        zone_aware = None
        if hosted.zone_aware_scheduler:
            zone_aware = await stack.enter_async_context(embedded.scheduled_by(schedulers.zone_aware(chances)))
        yield Stage(embedded, zone_aware)


@asynccontextmanager
async def _pages(
    scheduler: Scheduler, listening: ListenOptions, hosted: HostedCluster, place: Path
) -> AsyncIterator[ServedScheduler]:
    """Serves the pages of our scheduler on a free port. The token for them is in a file, for `numalign scheduler`."""

    async def refusal(asked: PageRequest) -> PageResponse | None:
        given = asked.headers.get("authorization", "")
        if asked.path in authz.OPEN or secrets.compare_digest(given.encode(), f"Bearer {listening.token}".encode()):
            return None
        return PageResponse("Unauthorized: send the token of the kubeconfig\n", 401)

    guard, secure = refusal if listening.token else None, listening.certificates is not None
    mounted = {path: mount(scheduler, guard, secure) for path, mount in hosted.mounted.items()}
    served = serve.Pages(pages.pages(scheduler, scheduler.config, None), guard, mounted=mounted)
    context = listening.certificates.context() if listening.certificates else None
    async with serve.serving(served, (listening.host, 0), context) as port:
        url = Address(listening.host, port, secure=context is not None).url
        files = {}
        if listening.certificates is not None:
            file = privatefile.write(place / "token", listening.token)
            files = {"token_file": str(file), "certificate_authority": str(listening.certificates.authority)}
        yield ServedScheduler(profiles.NAME, "NUMA zones", url, **files)


async def reported(embedded: cluster.Cluster, longest: float = LONGEST_WAIT) -> None:
    """Returns when every node that has a publisher has its report; publishers that are slow are not awaited longer."""
    waiting = {
        name for name, node in embedded.fleet.nodes.items() if node.node_state.spec.publishing.publisher != "none"
    }
    until = embedded.clock.now() + longest
    while waiting and embedded.clock.now() < until:
        await embedded.clock.sleep(LOOK)
        waiting -= {trees.metadata(each)["name"] for each in embedded.api.list(crd.RESOURCE).items}
    if waiting:
        LOG.warning("No topology report yet: nodes=%s", ", ".join(sorted(waiting)[:MOST_NAMED]))


async def _play(hosted: HostedCluster, embedded: cluster.Cluster) -> None:
    if hosted.scenario is not None and not hosted.fast_forward:
        _log_refused(await play.perform(hosted.scenario, embedded, hosted.scheduler, hosted.seed))


def _log_refused(refused: Iterable[str]) -> None:
    for each in refused:
        LOG.warning("Call of the scenario failed: %s", each)


def _running(
    hosted: HostedCluster, address: Address, kubeconfig: Path, served: Iterable[ServedScheduler]
) -> RunningCluster:
    return RunningCluster(
        name=hosted.name,
        pid=os.getpid(),
        url=address.url,
        kubeconfig=str(kubeconfig),
        nodes=len(hosted.nodes),
        words=hosted.words,
        schedulers=tuple(served),
    )


def _write_kubeconfig(place: Path, name: str, address: Address, authority: str, token: str) -> Path:
    file = place / "kubeconfig"
    # JSON is valid YAML. Only the owner may read the file, because it holds the token.
    content = msgspec.json.format(msgspec.json.encode(kubeconfig(name, address, authority, token)), indent=2) + b"\n"
    return privatefile.write(file, content)


def kubeconfig(name: str, address: Address, authority: str = "", token: str = "") -> dict[str, Any]:
    """Cluster, user and context have the name of the cluster, so that kubeconfigs can be merged."""
    reached: dict[str, Any] = {"server": address.url}
    if authority:
        reached["certificate-authority-data"] = b64encode(authority.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": reached}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
