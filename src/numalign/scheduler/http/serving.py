"""Runs a scheduler process: the scheduler, its pages, and the extender's server where one is wanted.

`numalign scheduler run` and `numalign extender run` call `serve`. With an extender, kube-scheduler's questions and the
scheduler's own pods are decided by one engine with one view of the cluster. The process ends on a signal, or when the
scheduler loses its lease."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign import __version__
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.client import Client
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.leader import leading
from numalign.kube.leader.lease import Election, Terms
from numalign.kube.transport.auth import Access
from numalign.kube.transport.sender import Bucket
from numalign.kube.transport.transport import Limits
from numalign.process import serve as pageserver
from numalign.process import tasks, traces
from numalign.process.certificates import CertificateFiles
from numalign.process.http import listen
from numalign.process.http.connection import Served
from numalign.process.log import about
from numalign.process.serve import Guard, Mounted
from numalign.process.traces import Collector
from numalign.scheduler import settings
from numalign.scheduler.capacity.expander import Expander
from numalign.scheduler.capacity.service import SERVED, CapacityService
from numalign.scheduler.compile import when_large
from numalign.scheduler.events.podtraces import Tracing
from numalign.scheduler.extender.extender import Extender, ExtenderSettings
from numalign.scheduler.http import authz, expanderserver, extenderserver, pages
from numalign.scheduler.main import Scheduler, Setup
from numalign.scheduler.provisioning.answers import Terms as ProvisioningTerms
from numalign.scheduler.provisioning.provisioner import Provisioner
from numalign.scheduler.record import recorder
from numalign.scheduler.record.recorder import OffLoop, Recorder, RecordingLimits
from numalign.scheduler.record.taps import Tape
from numalign.scheduler.snapshot import dump, files

LOG: Final = logging.getLogger(__name__)
SERVICE: Final = "numalign-scheduler"
"""As collectors of traces know the process."""
CALLS_BESIDE: Final = 32
"""Concurrent requests beside bindings: events, conditions, evictions, lists."""


class ServerCertificate(Struct, frozen=True):
    """The TLS context that a server uses, and the files that it came from."""

    context: ssl.SSLContext
    files: CertificateFiles | None = None


MountScheduler = Callable[[Scheduler, Guard | None, bool], Mounted]
"""An application about the scheduler. The guard authorizes clients; the flag says whether it is served with TLS."""


class PagesEndpoint(Struct, frozen=True, kw_only=True):
    address: str
    port: int
    certificate: ServerCertificate | None = None
    """None: without TLS, and without authorization."""
    open_to_all: tuple[str, ...] = authz.OPEN
    mounted: Mapping[str, MountScheduler] = {}
    """By path, what else is served."""


class ExtenderEndpoint(Struct, frozen=True, kw_only=True):
    address: str
    port: int
    certificate: ServerCertificate
    authenticated: bool
    """Whether TLS verifies the clients. Otherwise each request needs a token and the right to POST."""
    settings: ExtenderSettings = ExtenderSettings()


class ExpanderEndpoint(Struct, frozen=True, kw_only=True):
    """Where cluster-autoscaler asks which node groups are best."""

    address: str
    port: int
    certificate: tuple[bytes, bytes]
    """Chain and key in PEM, as they were when the process started."""


class Recording(Struct, frozen=True, kw_only=True):
    folder: Path
    limits: RecordingLimits = recorder.DEFAULTS
    off_loop: OffLoop = asyncio.to_thread


class SchedulerProcess(Struct, frozen=True, kw_only=True):
    config: Configuration
    access: Access
    pages: PagesEndpoint | None = None
    extender: ExtenderEndpoint | None = None
    expander: ExpanderEndpoint | None = None
    schedules: bool = True
    """False: kube-scheduler schedules the pods of all profiles."""
    recording: Recording | None = None
    """None: nothing is recorded."""
    provisioning: ProvisioningTerms | None = None
    """Not None: ProvisioningRequests are answered."""
    tracing: Collector | None = None
    """None: nothing is traced."""


async def serve(process: SchedulerProcess) -> None:
    """Runs the process until a signal ends it; raises `LeadershipLost` where the lease is lost."""
    config, access = process.config, process.access
    election = _election(config) if process.schedules else None
    limit = config.client_connection
    instance = f"{config.profiles[0].scheduler_name}-{socket.gethostname()}"
    LOG.info("Starting numalign scheduler", extra=about(**_standing(process, election)))
    async with AsyncExitStack() as stack:
        bucket = Bucket(limit.qps, limit.burst) if limit.qps else None
        limits = Limits(connections=settings.ours(config).parallel_binds + CALLS_BESIDE)
        client = await stack.enter_async_context(Client(access, limits, bucket=bucket))
        elector = await stack.enter_async_context(Client(access))
        tape = Tape() if process.recording is not None else None
        send = stack.enter_context(traces.exporting(process.tracing, SERVICE, instance)) if process.tracing else None
        setup = Setup(
            config=config,
            instance=instance,
            schedules=process.schedules,
            tape=tape,
            tracing=Tracing(send, process.tracing.ratio) if process.tracing and send else None,
            extender=process.extender.settings if process.extender is not None else None,
        )
        scheduler = Scheduler(setup, client, election)
        if tape is not None and process.recording is not None:
            record(scheduler, tape, process.recording, client.sender.clock)
        if process.provisioning is not None:
            answer_provisioning_requests(scheduler, process.provisioning, client)
        beside: dict[str, tasks.Part] = {"settling": _settle(scheduler)}
        if process.extender is not None and scheduler.extender is not None:
            await _serve_extender(stack, scheduler, scheduler.extender, process.extender, access)
            if process.extender.certificate.files is not None:
                beside["extender-certificate"] = process.extender.certificate.files.follow()
        if process.expander is not None:
            asked = Expander(scheduler.cluster, settings.engine(config))
            place = (process.expander.address, process.expander.port)
            await stack.enter_async_context(
                expanderserver.serving(asked, place, process.expander.certificate, lambda: scheduler.watched.has_synced)
            )
        if process.pages is not None:
            await _serve_pages(stack, scheduler, process.pages, access, election)
            if process.pages.certificate is not None and process.pages.certificate.files is not None:
                beside["certificate"] = process.pages.certificate.files.follow()
        await tasks.until_signalled(tasks.together(scheduler.run(elector), beside))


def _standing(process: SchedulerProcess, election: Election | None) -> dict[str, object]:
    """What an operator has to know about the process."""
    server, served = process.access.server, process.config.profiles
    return {
        "version": __version__,
        "server": f"{'https' if server.secure else 'http'}://{server.authority}",
        "schedulers": ",".join(each.scheduler_name for each in served) if process.schedules else "none (extender only)",
        "lease": election.place.full_name if election is not None else "none (leader election is off)",
        "identity": election.identity if election is not None else socket.gethostname(),
        "pages": _url(process.pages, secure=process.pages.certificate is not None) if process.pages else "none",
        "extender": _url(process.extender, secure=True) if process.extender else "none",
    }


def _url(endpoint: PagesEndpoint | ExtenderEndpoint, *, secure: bool) -> str:
    host = f"[{endpoint.address}]" if ":" in endpoint.address else endpoint.address
    return f"{'https' if secure else 'http'}://{host}:{endpoint.port}"


def record(scheduler: Scheduler, tape: Tape, recording: Recording, clock: Clock) -> None:
    """Makes the scheduler record while it leads. `tape`: the one that it was set up with."""
    folder, limits, off_loop = recording.folder, recording.limits, recording.off_loop
    made = Recorder(tape, folder, lambda: files.pieces(dump.taken(scheduler)), clock, limits, off_loop)
    scheduler.while_leading["recording"] = made.run


def answer_provisioning_requests(scheduler: Scheduler, terms: ProvisioningTerms, client: Client) -> None:
    """Makes the scheduler answer ProvisioningRequests while it leads."""
    counting = CapacityService(scheduler.cluster, scheduler.profiles, scheduler.config, SERVED)
    made = Provisioner(client, counting, scheduler.cluster.world, scheduler.watched.synced, scheduler.leads, terms)
    scheduler.while_leading["provisioning"] = made.run


def _election(config: Configuration) -> Election | None:
    elect = config.leader_election
    terms = Terms(lease=elect.lease_duration, renew=elect.renew_deadline, retry=elect.retry_period)
    return leading.election(elect.resource_name, elect.resource_namespace, terms) if elect.leader_elect else None


async def _serve_extender(
    stack: AsyncExitStack, scheduler: Scheduler, extender: Extender, endpoint: ExtenderEndpoint, access: Access
) -> None:
    guard = None
    if not endpoint.authenticated:
        guard = await stack.enter_async_context(authz.guarding(access, ()))
    server = extenderserver.ExtenderServer(
        extender,
        scheduler.metrics,
        scheduler.clock,
        extenderserver.questions(scheduler.cluster, scheduler.profiles, scheduler.config),
        is_synced=lambda: scheduler.watched.has_synced,
        guard=guard,
    )
    served = Served(server, extenderserver.LIMITS)
    place = (endpoint.address, endpoint.port)
    await stack.enter_async_context(listen.listening(served, place, endpoint.certificate.context))


async def _serve_pages(
    stack: AsyncExitStack, scheduler: Scheduler, endpoint: PagesEndpoint, access: Access, election: Election | None
) -> None:
    guard, context = None, None
    if endpoint.certificate is not None:
        guard = await stack.enter_async_context(authz.guarding(access, endpoint.open_to_all))
        context = endpoint.certificate.context
    mounted = {path: mount(scheduler, guard, context is not None) for path, mount in endpoint.mounted.items()}
    made = pages.pages(scheduler, scheduler.config, election)
    routes = pageserver.Pages(made, guard, pages.posts(scheduler), mounted)
    await stack.enter_async_context(pageserver.serving(routes, (endpoint.address, endpoint.port), context))


async def _settle(scheduler: Scheduler) -> None:
    """Settles memory once the caches are synced, and again after the kernels are compiled."""
    cluster = scheduler.cluster
    await scheduler.watched.synced()
    tasks.settle()
    if await when_large(cluster.engine, lambda: cluster.nodes, SystemClock()):
        tasks.settle()
