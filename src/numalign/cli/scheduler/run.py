"""`numalign scheduler run`: the scheduler as a process, until a signal ends it or another one takes over."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from numalign.cli import output

if TYPE_CHECKING:
    import ssl

    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.kube.transport.auth import Access
    from numalign.process.certificates import CertificateFiles
    from numalign.scheduler.main import Scheduler

LOOPBACK = ("127.0.0.1", "::1", "localhost")
CALLS_BESIDE = 32
"""At a time, beside bindings: events, conditions, evictions, first looks at the cluster."""

ConfigFile = Annotated[str, typer.Option("--config", help="a KubeSchedulerConfiguration; without one, defaults")]
Kubeconfig = Annotated[str, typer.Option(help="whose cluster; without one, KUBECONFIG or the pod's own account")]
Address = Annotated[str, typer.Option(metavar="ADDRESS", help="where health and metrics are served")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0: nowhere")]
Certificate = Annotated[
    str, typer.Option(metavar="FILE", help="to serve with; without one, plain on the loopback, self-signed elsewhere")
]
Key = Annotated[str, typer.Option(metavar="FILE", help="its private key, unless that is in the same file")]
OpenPaths = Annotated[
    str,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        help="what is served to all, separated by commas; one that ends in * has everything under it",
    ),
]
Verbosity = Annotated[int, typer.Option("-v", help="4 and more is debugging; can be changed while it runs")]
Form = Annotated[output.LogForm, typer.Option("--log-format", help="how to write the log")]


class Shown(NamedTuple):
    """What is shown over TLS, and the files that it came from."""

    context: ssl.SSLContext
    files: CertificateFiles | None


class Pages(NamedTuple):
    """Where they are served, and how."""

    address: str
    port: int
    shown: Shown | None
    """None: without TLS."""
    open_to_all: tuple[str, ...]


def run(
    config: ConfigFile = "",
    kubeconfig: Kubeconfig = "",
    bind_address: Address = "127.0.0.1",
    port: Port = 10259,
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    open_paths: OpenPaths = "/healthz,/readyz,/livez",
    verbosity: Verbosity = 2,
    log_format: Form = output.LogForm.TEXT,
) -> None:
    """Schedule pods, as leader or in waiting.

    Exit code: 0 after a signal, 1 if leadership was lost or something failed, 2 if it cannot start."""
    from numalign.api.errors import BadObject
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.kube.leader.leading import LeadershipLost
    from numalign.process import log

    log.start("json" if log_format is output.LogForm.JSON else "text", verbosity)
    try:
        read = _configuration(config)
        shown = _from_files(tls_certificate, tls_key) if tls_certificate or tls_key else _of_our_own(bind_address)
        pages = Pages(bind_address, port, shown, tuple(filter(None, open_paths.split(","))))
        found = access.default(kubeconfig or read.client_connection.kubeconfig)
    except BadObject as problem:
        output.fail(str(problem))
    try:
        with clock.event_loop_runner() as runner:
            runner.run(_served(read, found, pages))
    except LeadershipLost as problem:
        output.fail(str(problem), 1)
    except BadObject as problem:
        output.fail(str(problem))
    except OSError as problem:
        output.fail(f"{bind_address}:{port} cannot be served: {problem.strerror or problem}")


def _configuration(file: str) -> Configuration:
    from numalign.cli import yamlfiles
    from numalign.scheduler import main, settings

    if not file:
        return main.defaults()
    document = yamlfiles.only(file)
    config = settings.read(document.value, document.place)
    for warning in config.warnings:
        output.warn(warning)
    return config


def _from_files(certificate: str, key: str) -> Shown:
    from numalign.api.errors import BadObject
    from numalign.process.certificates import CertificateFiles, Unusable

    if not certificate:
        raise BadObject("scheduler run", key, "--tls-key", "is of no use alone; give --tls-certificate, too")
    try:
        files = CertificateFiles(Path(certificate), Path(key or certificate))
    except Unusable as problem:
        raise BadObject("scheduler run", certificate, "--tls-certificate", str(problem)) from None
    return Shown(files.context, files)


def _of_our_own(address: str) -> Shown | None:
    if address in LOOPBACK:
        return None

    from numalign.api.errors import BadObject
    from numalign.process import certificates
    from numalign.process.certificates import CryptographyMissing

    hosts = ("localhost", socket.gethostname(), "127.0.0.1", "::1")
    try:
        return Shown(certificates.self_signed_context(hosts, datetime.now(UTC)), None)
    except CryptographyMissing:
        why = (
            "is not a loopback address: give --tls-certificate, or install numalign[tls] for a self-signed certificate"
        )
        raise BadObject("scheduler run", address, "--bind-address", why) from None


async def _settled(scheduler: Scheduler) -> None:
    """Once it knows its world, and again with the machine code that a large one is worth."""
    from numalign.kube.clock import SystemClock
    from numalign.process import tasks
    from numalign.scheduler import compile as warming

    cluster = scheduler.cluster
    await scheduler.watched.synced()
    tasks.settle()
    if await warming.when_large(cluster.engine, lambda: cluster.nodes, SystemClock()):
        tasks.settle()


async def _served(config: Configuration, access: Access, served: Pages) -> None:
    from contextlib import AsyncExitStack

    from numalign.kube.client import Client
    from numalign.kube.leader import leading
    from numalign.kube.leader.lease import Terms
    from numalign.kube.transport.sender import Bucket
    from numalign.kube.transport.transport import Limits
    from numalign.process import serve, tasks
    from numalign.scheduler import settings
    from numalign.scheduler.http import authz
    from numalign.scheduler.http import pages as serving
    from numalign.scheduler.main import Scheduler, Setup

    elect, limit = config.leader_election, config.client_connection
    terms = Terms(lease=elect.lease_duration, renew=elect.renew_deadline, retry=elect.retry_period)
    election = leading.election(elect.resource_name, elect.resource_namespace, terms) if elect.leader_elect else None
    instance = f"{config.profiles[0].scheduler_name}-{socket.gethostname()}"
    async with AsyncExitStack() as stack:
        bucket = Bucket(limit.qps, limit.burst) if limit.qps else None
        room = Limits(connections=settings.ours(config).parallel_binds + CALLS_BESIDE)
        client = await stack.enter_async_context(Client(access, room, bucket=bucket))
        elector = await stack.enter_async_context(Client(access))
        scheduler = Scheduler(Setup(config=config, instance=instance), client, election)
        if served.port:
            guard = authz.guard(client, served.open_to_all) if served.shown is not None else None
            pages = serve.Pages(serving.pages(scheduler, config, election), guard)
            context = served.shown.context if served.shown is not None else None
            await stack.enter_async_context(serve.serving(pages, (served.address, served.port), context))
        beside: dict[str, tasks.Part] = {
            "settling": _settled(scheduler),
        }
        if served.shown is not None and served.shown.files is not None:
            beside["certificate"] = served.shown.files.follow()
        await tasks.until_signalled(tasks.together(scheduler.run(elector), beside))
