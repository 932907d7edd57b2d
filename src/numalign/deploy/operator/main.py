"""Builds the operator and runs it.

    await run(setup, client, elector)

`numalign operator run` calls it in real time, tests in virtual time. Every replica watches the cluster; only the leader
reconciles. When the lease is lost, `LeadershipLost` ends the process, which must be started again."""

from __future__ import annotations

import contextlib
from typing import Final

import msgspec
from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.deploy.operator import fields, kinds
from numalign.deploy.operator.controller import Controller
from numalign.deploy.operator.metrics import Metrics
from numalign.deploy.operator.plan import PlanOptions
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.events.events import Reporter
from numalign.kube.events.recorder import Recorder
from numalign.kube.leader import leading
from numalign.kube.leader.lease import USUAL, Election, Terms
from numalign.kube.request import Repeat, Request
from numalign.process import metrics, serve, tasks
from numalign.process.serve import Page, PageRequest, PageResponse

LEASE: Final = "numalign-operator"


class Setup(Struct, frozen=True, kw_only=True):
    options: PlanOptions
    instance: str = ""
    """The reporter of Events: the host name."""
    elects: bool = True
    identity: str = ""
    """The holder of the lease; empty: the host name and a random part."""
    terms: Terms = USUAL
    address: tuple[str, int] | None = None
    """The address of the pages; None: not served."""


class Version(Wire, frozen=True):
    git_version: str = ""


async def kube_version(client: Client) -> str:
    """The version of the API server. KubeError where it does not answer."""
    asked = Request(verb="get", method="GET", path="/version", words="the server's version", repeat=Repeat.ALWAYS)
    body = await client.sender.call(asked)
    try:
        return msgspec.json.decode(body, type=Version).git_version
    except (ValueError, RecursionError):
        raise errors.Unreachable("get", "the server's version", "the answer is not one") from None


async def is_defined(client: Client) -> bool:
    """Whether the API server serves the two kinds."""
    path = f"/apis/{kinds.API_VERSION}"
    asked = Request(verb="get", method="GET", path=path, words=kinds.API_VERSION, repeat=Repeat.ALWAYS)
    try:
        await client.sender.call(asked)
    except errors.NotFound:
        return False
    return True


class OperatorProcess:
    def __init__(self, setup: Setup, client: Client, elector: Client | None = None) -> None:
        """`elector`: a separate client for the lease."""
        self._setup, self._client, self._elector = setup, client, elector or client
        clock, namespace = client.sender.clock, setup.options.namespace
        self.election: Election | None = None
        if setup.elects:
            self.election = leading.election(LEASE, namespace, setup.terms, setup.identity)
        self._now = clock.now
        self._reporter = Reporter(fields.MANAGER, setup.instance)
        self._recorder = Recorder(client, self._reporter)
        self.controller = Controller(client, setup.options, self._recorder, Metrics(), self.leads)

    def leads(self) -> bool:
        return self.election is None or self.election.leads(self._now())

    async def run(self) -> None:
        """Runs until cancelled. OSError where the pages cannot be served, LeadershipLost where the lease is lost."""
        async with contextlib.AsyncExitStack() as stack:
            if self._setup.address is not None:
                await stack.enter_async_context(serve.serving(serve.Pages(self.pages()), self._setup.address))
            await tasks.together(self._lead(), self.controller.watches())

    async def _lead(self) -> None:
        if self.election is None:
            await self._work()
            return
        await self.controller.synced()
        await leading.lead(self._elector, self.election, self._work, self._reporter)

    async def _work(self) -> None:
        await tasks.together(self.controller.run(), {"events": self._recorder.run()})

    def pages(self) -> dict[str, Page]:
        def readiness(_: PageRequest) -> PageResponse:
            if self.controller.has_synced:
                return PageResponse("ok\n")
            return PageResponse("still reading the cluster; are the CustomResourceDefinitions installed?\n", 503)

        registry = self.controller.metrics.registry
        return {
            "/metrics": lambda _: PageResponse(registry.text(), content_type=metrics.CONTENT_TYPE),
            "/healthz": lambda _: PageResponse("ok\n"),
            "/readyz": readiness,
        }
