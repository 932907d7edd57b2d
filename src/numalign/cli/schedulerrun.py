"""`numalign scheduler run`: the scheduler as a process, until a signal ends it or another one takes over."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from numalign.cli import output

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.kube.auth import Access
    from numalign.scheduler.main import Scheduler

LOG = logging.getLogger(__name__)
RELOAD = 60.0
"""Seconds between two looks at the certificate's files."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")

ConfigFile = Annotated[str, typer.Option("--config", help="a KubeSchedulerConfiguration; without one, defaults")]
Kubeconfig = Annotated[str, typer.Option(help="whose cluster; without one, KUBECONFIG or the pod's own account")]
Address = Annotated[str, typer.Option(metavar="ADDRESS", help="where health and metrics are served")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0: nowhere")]
Certificate = Annotated[str, typer.Option(metavar="FILE", help="certificate to serve with; needs --tls-key")]
Key = Annotated[str, typer.Option(metavar="FILE", help="its private key")]
OpenPaths = Annotated[
    str,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        help="what is served to all, separated by commas; one that ends in * has everything under it",
    ),
]
Verbosity = Annotated[int, typer.Option("-v", help="4 and more is debugging; can be changed while it runs")]
Form = Annotated[str, typer.Option("--log-format", help="text or json")]


class Pages(NamedTuple):
    """Where they are served, and how."""

    address: str
    port: int
    certificate: str
    key: str
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
    log_format: Form = "text",
) -> None:
    """Schedule pods, as leader or in waiting.

    Exit code: 0 after a signal, 1 if leadership was lost or something failed, 2 if it cannot start."""
    from numalign.api.errors import BadObject
    from numalign.kube import access, loops
    from numalign.kube.leading import LeadershipLost
    from numalign.process import log

    form: Literal["text", "json"] = "json" if log_format == "json" else "text"
    log.start(form, verbosity)
    pages = Pages(bind_address, port, tls_certificate, tls_key, tuple(filter(None, open_paths.split(","))))
    try:
        read = _configuration(config)
        context = _context(pages)
        found = access.found(kubeconfig or read.client_connection.kubeconfig)
    except BadObject as problem:
        output.fail(str(problem))
    try:
        with loops.runner() as runner:
            runner.run(_served(read, found, pages, context))
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


def _context(pages: Pages) -> ssl.SSLContext | None:
    from numalign.api.errors import BadObject

    if not pages.certificate:
        if pages.port and pages.address not in LOOPBACK:
            why = "is needed to serve on an address that others reach; give one, or serve on 127.0.0.1"
            raise BadObject("scheduler run", "", "--tls-certificate", why)
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(pages.certificate, pages.key or None)
    except (OSError, ssl.SSLError) as problem:
        why = f"cannot be used: {problem}"
        raise BadObject("scheduler run", pages.certificate, "--tls-certificate", why) from None
    return context


async def _renewed(pages: Pages, context: ssl.SSLContext) -> None:
    """Certificates are replaced while we run; from then on, new connections see the new one."""
    while True:
        await asyncio.sleep(RELOAD)
        try:
            context.load_cert_chain(pages.certificate, pages.key or None)
        except (OSError, ssl.SSLError) as problem:
            LOG.warning("the certificate in %s cannot be used, the last one stays: %s", pages.certificate, problem)


async def _settled(scheduler: Scheduler) -> None:
    from numalign.process import garbage

    await scheduler.watched.synced()
    garbage.settle()


async def _served(config: Configuration, access: Access, served: Pages, context: ssl.SSLContext | None) -> None:
    from contextlib import AsyncExitStack

    from numalign.kube import leading
    from numalign.kube.client import Client
    from numalign.kube.lease import Terms
    from numalign.kube.ratelimit import Bucket
    from numalign.process import serve, tasks
    from numalign.scheduler import guarding, serving
    from numalign.scheduler.main import Scheduler, Setup

    elect, limit = config.leader_election, config.client_connection
    terms = Terms(lease=elect.lease_duration, renew=elect.renew_deadline, retry=elect.retry_period)
    election = leading.election(elect.resource_name, elect.resource_namespace, terms) if elect.leader_elect else None
    instance = f"{config.profiles[0].scheduler_name}-{socket.gethostname()}"
    async with AsyncExitStack() as stack:
        bucket = Bucket(limit.qps, limit.burst) if limit.qps else None
        client = await stack.enter_async_context(Client(access, bucket=bucket))
        elector = await stack.enter_async_context(Client(access))
        scheduler = Scheduler(Setup(config=config, instance=instance), client, election)
        if served.port:
            guard = guarding.guard(client, served.open_to_all) if context is not None else None
            pages = serve.Pages(serving.pages(scheduler, config, election), guard)
            await stack.enter_async_context(serve.serving(pages, (served.address, served.port), context))
        beside: dict[str, tasks.Part] = {
            "warming": asyncio.to_thread(scheduler.cluster.engine.warm),
            "settling": _settled(scheduler),
        }
        if context is not None:
            beside["certificate"] = _renewed(served, context)
        await tasks.until_signalled(tasks.together(scheduler.run(elector), beside))
