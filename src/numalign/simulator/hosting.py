"""Hosts an embedded cluster in real time and serves it over HTTP until a signal ends it.

`numalign cluster up` calls `host` in a process of its own. The folder of the cluster holds its kubeconfig."""

import asyncio
import logging
import os
import random
import secrets
import signal
from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.kube.clock import event_loop_runner
from numalign.process import privatefile
from numalign.simulator import clock, cluster, registry, schedulers, trees
from numalign.simulator.apiserver.http import server
from numalign.simulator.apiserver.http.server import Address, ListenOptions
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.registry import RunningCluster
from numalign.simulator.scenarios import play
from numalign.simulator.scenarios.scenario import Scenario

LOG: Final = logging.getLogger(__name__)
USER: Final = "embedded"
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
    scheduler: str = DEFAULT_SCHEDULER
    default_scheduler: bool = True
    """Whether default-scheduler runs, which sees node totals only."""
    zone_aware_scheduler: bool = False
    """Whether our scheduler runs in the same process, under its own name."""
    port: int = 0
    secure: bool = True
    """Serves TLS and requires a token, which only the kubeconfig has."""
    seed: int = 1


def host(hosted: HostedCluster) -> None:
    """Returns when a signal ends the cluster. Raises AlreadyRuns if a cluster of this name is up."""
    with registry.held(hosted.name) as place, event_loop_runner() as runner:
        runner.run(_host(hosted, place))


async def _host(hosted: HostedCluster, place: Path) -> None:
    ended = asyncio.Event()
    for what in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(what, ended.set)
    made = server.make_certificates(place) if hosted.secure else None
    token = secrets.token_urlsafe(24) if hosted.secure else ""
    chances, listening = random.Random(hosted.seed), ListenOptions(port=hosted.port, certificates=made, token=token)
    authority = made.authority.read_text() if made else ""
    running = cluster.running(
        hosted.nodes, clock.real(chances), chances, authority=authority, default_scheduler=hosted.default_scheduler
    )
    async with running as embedded, AsyncExitStack() as stack:
        if hosted.zone_aware_scheduler:
            await stack.enter_async_context(embedded.scheduled_by(schedulers.zone_aware(chances)))
        async with server.serve(embedded.api, listening) as address:
            file = _write_kubeconfig(place, address, authority, token)
            await reported(embedded)
            registry.announce(place, _running(hosted, address, file))
            LOG.info("Serving embedded cluster name=%s url=%s (%s)", hosted.name, address.url, hosted.words)
            playing_on = asyncio.create_task(_play(hosted, embedded))
            await ended.wait()
            playing_on.cancel()


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
    if hosted.scenario is None:
        return
    for refused in await play.perform(hosted.scenario, embedded, hosted.scheduler, hosted.seed):
        LOG.warning("API server rejected a call of the scenario: %s", refused)


def _running(hosted: HostedCluster, address: Address, kubeconfig: Path) -> RunningCluster:
    return RunningCluster(
        name=hosted.name,
        pid=os.getpid(),
        url=address.url,
        kubeconfig=str(kubeconfig),
        nodes=len(hosted.nodes),
        words=hosted.words,
    )


def _write_kubeconfig(place: Path, address: Address, authority: str, token: str) -> Path:
    file = place / "kubeconfig"
    # JSON is valid YAML. Only the owner may read the file, because it holds the token.
    content = msgspec.json.format(msgspec.json.encode(kubeconfig(address, authority, token)), indent=2) + b"\n"
    return privatefile.write(file, content)


def kubeconfig(address: Address, authority: str = "", token: str = "") -> dict[str, Any]:
    reached: dict[str, Any] = {"server": address.url}
    if authority:
        reached["certificate-authority-data"] = b64encode(authority.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": USER, "cluster": reached}],
        "users": [{"name": USER, "user": {"token": token} if token else {}}],
        "contexts": [{"name": USER, "context": {"cluster": USER, "user": USER}}],
        "current-context": USER,
    }
