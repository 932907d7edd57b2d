"""Builds and runs the agent process, and serves its pages.

`numalign agent run` calls `run`; `agent once` and `agent show` use `snapshot_reader` alone. Every source may be
missing: without the kubelet's sockets, the kernel and the checkpoints remain. /healthz covers the process only: an
unavailable kubelet or API server is no reason to restart the agent. /readyz reports whether the report is recent, and
if not, why."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent.cycle import Agent
from numalign.agent.enforce.enforcer import Enforcement, Enforcer
from numalign.agent.inventory.podidentity import UidLookup
from numalign.agent.inventory.readings import Sources
from numalign.agent.inventory.snapshot import SnapshotReader
from numalign.agent.publish.publish import Manner
from numalign.agent.sources import checkpoints, kubeletconfig, podresources
from numalign.agent.sources.podresources import PodResourcesClient
from numalign.agent.sources.pods import SOCKET as PODS_SOCKET
from numalign.agent.sources.pods import PodsView
from numalign.agent.triggers import triggers
from numalign.agent.triggers.schedule import Pace
from numalign.agent.triggers.triggers import ConnectionWatch, KubeletWatch, Triggers
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kube.client import Client
from numalign.kube.transport.auth import Access
from numalign.kube.transport.transport import Limits
from numalign.process import metrics, serve, tasks
from numalign.process.serve import Page, PageRequest, PageResponse

READY_WITHIN: Final = 3
"""Periods for which /readyz counts a report as recent."""


def _enforcement(agent: Agent) -> str:
    """One line where the agent enforces decisions, or would if it could."""
    enforcer = agent.enforcer
    if enforcer is None:
        return ""
    reason = enforcer.state.barred or enforcer.standing
    late = ", after containers have started: NRI is off" if enforcer.is_late else ""
    return f"direct mode: {'off: ' + reason if reason else 'on' + late}\n"


def status_pages(agent: Agent, period: float) -> dict[str, Page]:
    def readiness(_: PageRequest) -> PageResponse:
        age = agent.age()
        if agent.is_paused:
            return PageResponse("ok: publishing is paused by --no-publish\n")
        if age is not None and age <= READY_WITHIN * period:
            return PageResponse(f"ok: the report was correct {age:.0f} s ago\n{_enforcement(agent)}")
        other = agent.other
        standing = agent.standing
        reasons = [*standing.withheld, *filter(None, [standing.failure])]
        reasons += [f"{other} writes this node's report"] if other else []
        since = "never" if age is None else f"{age:.0f} s ago"
        return PageResponse("\n".join([f"last published: {since}", *reasons, ""]), 503)

    return {
        "/metrics": lambda _: PageResponse(agent.metrics.registry.text(), content_type=metrics.CONTENT_TYPE),
        "/healthz": lambda _: PageResponse("ok\n"),
        "/readyz": readiness,
    }


LIMITS: Final = Limits(connections=4, connect_seconds=5.0, call_seconds=10.0)
"""The agent does nothing else while it waits for the API server, so the time limits are short (exporter spec, D-16)."""
PODS: Final = "pods"
ENFORCED: Final = "enforced"
"""A decision was applied, or was not."""
SHARE: Final = 0.0036
"""Share of a core that the agent may use on a busy node."""


class Places(Struct, frozen=True, kw_only=True):
    """The paths of the node's files."""

    host: Path = Path("/")
    """The host's root, in the agent's mount namespace."""
    kubelet: str = "/var/lib/kubelet"
    """The kubelet's root folder, as a path of the host."""
    device_plugins: str = checkpoints.DEVICE_PLUGINS
    """The folder of the device manager, as a path of the host."""
    config: str = ""
    """The kubelet's configuration file; empty: detected."""
    notification: Path | None = None
    """A file that other programs touch to request a snapshot."""
    podresources: Path | None = None
    """The socket, in the agent's mount namespace; None: below the kubelet's root."""
    reference: ContainerRef | None = None
    """A container without exclusive CPUs, for kubelets before 1.23."""

    @property
    def kubelet_root(self) -> Path:
        return self.host / self.kubelet.lstrip("/")

    @property
    def plugin_folder(self) -> Path:
        return self.host / self.device_plugins.lstrip("/")

    @property
    def socket(self) -> Path:
        return self.podresources or self.kubelet_root / podresources.SOCKET


class Setup(Struct, frozen=True, kw_only=True):
    node: str
    manner: Manner
    places: Places = Places()
    configz: Access | None = None
    """The kubelet's own server, to read its /configz; None: not read."""
    address: tuple[str, int] | None = None
    """The address of the pages; None: not served."""
    enforcement: Enforcement | None = None
    """How decisions of direct mode are enforced; None: not at all."""


@contextlib.asynccontextmanager
async def snapshot_reader(
    places: Places, node: str = "", client: Client | None = None, *, configz: Access | None = None
) -> AsyncIterator[tuple[SnapshotReader, PodsView]]:
    """Yields a reader of snapshots, and runs what follows the kubelet's pods until the block is left."""
    kubelet = PodResourcesClient(places.socket)
    pods = PodsView(places.kubelet_root / PODS_SOCKET)
    server = None if configz is None else kubeletconfig.KubeletClient(configz)
    fetch = None if server is None else server.configz
    sources = Sources(
        host=places.host,
        kubelet_root=places.kubelet_root,
        device_plugins=places.plugin_folder,
        podresources=kubelet,
        socket=places.socket,
        configuration=kubeletconfig.ConfigSources(
            host=places.host, kubelet_root=places.kubelet, config=places.config, configz=fetch
        ),
    )
    try:
        yield SnapshotReader(sources, UidLookup(node, pods, client), places.reference), pods
    finally:
        await kubelet.close()
        await pods.close()
        if server is not None:
            server.close()


async def run(setup: Setup, client: Client) -> None:
    """Runs until cancelled. OSError where the pages cannot be served."""
    places = setup.places
    files = triggers.of_kubelet(places.kubelet_root, places.plugin_folder, places.notification, places.socket)
    async with contextlib.AsyncExitStack() as stack:
        reader = snapshot_reader(places, setup.node, client, configz=setup.configz)
        looks, pods = await stack.enter_async_context(reader)
        waiting = await stack.enter_async_context(Triggers(files, Pace(period=setup.manner.period, share=SHARE)))
        agent = Agent(setup.node, client, setup.manner, looks, waiting)
        if setup.enforcement is not None:
            agent.enforcer = Enforcer(
                setup.node, setup.enforcement, looks.sources.clock, partial(waiting.ask, ENFORCED), agent.report_failure
            )
        if setup.address is not None:
            pages = serve.Pages(status_pages(agent, setup.manner.period))
            await stack.enter_async_context(serve.serving(pages, setup.address))
        beside: dict[str, tasks.Part] = {
            "events": agent.recorder.run(),
            "pods": pods.follow(lambda: waiting.ask(PODS)),
        }
        if (kubelet := looks.sources.podresources) is not None:
            looks.sources.podresources = watch = KubeletWatch(kubelet)
            changed, clock = partial(_kubelet_changed, looks, waiting), looks.sources.clock
            beside["kubelet"] = watch.follow(changed, clock)
            connections = ConnectionWatch(places.socket, places.plugin_folder)
            beside["connections"] = connections.follow(partial(watch.check, changed, clock), clock)
        if agent.enforcer is not None:
            beside["enforcer"] = agent.enforcer.run()
        await tasks.together(agent.run(), beside)


def _kubelet_changed(looks: SnapshotReader, waiting: Triggers) -> None:
    looks.sources.offer_changed()
    waiting.ask(triggers.REASON, urgent=True)
