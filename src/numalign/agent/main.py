"""The agent as a process, built and run.

`numalign agent run` calls `run`, `agent once` and `agent show` take `looker` alone. Each part may be missing: without
the kubelet's sockets there is what the kernel and the checkpoints say."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.agent import http
from numalign.agent.cycle import Agent
from numalign.agent.inventory.readings import Sources
from numalign.agent.inventory.snapshot import Looker
from numalign.agent.inventory.uids import Uids
from numalign.agent.publish.publish import Manner
from numalign.agent.sources import configz, kubeletconfig, podresources
from numalign.agent.sources import pods as podsapi
from numalign.agent.sources.podresources import PodResourcesClient
from numalign.agent.sources.podsview import PodsView
from numalign.agent.triggers import devicewatch, triggers
from numalign.agent.triggers.devicewatch import DeviceWatch
from numalign.agent.triggers.schedule import Pace
from numalign.agent.triggers.triggers import Triggers
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kube.client import Client
from numalign.kube.transport.transport import Limits
from numalign.process import serve, tasks

LIMITS: Final = Limits(connections=4, connect_seconds=5.0, call_seconds=10.0)
"""Nothing else happens while we wait for the API server, so that waiting has to end soon (exporter spec, D-16)."""
PODS: Final = "pods"
SHARE: Final = 0.0036
"""Of a core, however much happens on the node."""


class Places(Struct, frozen=True, kw_only=True):
    """Where the node's files are."""

    host: Path = Path("/")
    """The host's root, as we see it."""
    kubelet: str = "/var/lib/kubelet"
    """The kubelet's root folder, as the host calls it."""
    config: str = ""
    """Its configuration; empty: found out."""
    notification: Path | None = None
    """A file that others touch to ask for a look."""
    podresources: Path | None = None
    """The socket, as we see it; None: below the kubelet's root."""
    reference: ContainerRef | None = None
    """A container without CPUs of its own, for kubelets before 1.23."""

    @property
    def kubelet_root(self) -> Path:
        return self.host / self.kubelet.lstrip("/")

    @property
    def socket(self) -> Path:
        return self.podresources or self.kubelet_root / podresources.SOCKET


class Setup(Struct, frozen=True, kw_only=True):
    node: str
    manner: Manner
    places: Places = Places()
    proxy: bool = False
    """Whether to ask the kubelet's /configz through the API server, which takes a broad right."""
    address: tuple[str, int] | None = None
    """Where pages are served; None: nowhere."""


@contextlib.asynccontextmanager
async def looker(
    places: Places, node: str = "", client: Client | None = None, *, proxy: bool = False
) -> AsyncIterator[tuple[Looker, PodsView]]:
    """Open until the block is left; with what follows the kubelet's pods."""
    kubelet = PodResourcesClient(places.socket)
    pods = PodsView(places.kubelet_root / podsapi.SOCKET)
    fetch = configz.through_api_server(client.sender, node) if proxy and client is not None else None
    sources = Sources(
        host=places.host,
        kubelet_root=places.kubelet_root,
        podresources=kubelet,
        socket=places.socket,
        configuration=kubeletconfig.Sources(
            host=places.host, kubelet_root=places.kubelet, config=places.config, configz=fetch
        ),
    )
    try:
        yield Looker(sources, Uids(node, pods, client), places.reference), pods
    finally:
        await kubelet.close()
        await pods.close()


async def run(setup: Setup, client: Client) -> None:
    """Until cancelled. OSError where the pages cannot be served."""
    places = setup.places
    files = triggers.of_kubelet(places.kubelet_root, places.notification, places.socket)
    async with contextlib.AsyncExitStack() as stack:
        looks, pods = await stack.enter_async_context(looker(places, setup.node, client, proxy=setup.proxy))
        waiting = await stack.enter_async_context(Triggers(files, Pace(period=setup.manner.period, share=SHARE)))
        agent = Agent(setup.node, client, setup.manner, looks, waiting)
        if setup.address is not None:
            pages = serve.Pages(http.pages(agent, setup.manner.period))
            await stack.enter_async_context(serve.serving(pages, setup.address))
        beside: dict[str, tasks.Part] = {
            "events": agent.recorder.run(),
            "pods": pods.follow(lambda: waiting.ask(PODS)),
        }
        if (kubelet := looks.sources.podresources) is not None:
            looks.sources.podresources = watch = DeviceWatch(kubelet)
            beside["devices"] = watch.follow(partial(_devices_changed, looks, waiting), looks.sources.clock)
        await tasks.together(agent.run(), beside)


def _devices_changed(looks: Looker, waiting: Triggers) -> None:
    looks.sources.offer_changed()
    waiting.ask(devicewatch.REASON)
