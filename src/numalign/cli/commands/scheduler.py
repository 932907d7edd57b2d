"""`numalign scheduler`: runs the scheduler, checks its configuration, and inspects a running one.

`run` is the scheduler process: it ends on a signal or when it loses its lease. `state` and `dump` read the pages of a
running scheduler, `repeat` makes one decision of a dump again. The commands import what they call when they run, so
that help stays fast."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from numalign.api.errors import BadObject
from numalign.cli import output, sources
from numalign.cli.options import BindAddress, Kubeconfig, LogFormat, Output, Port, bundled
from numalign.cli.output import Format
from numalign.cli.sources import ClusterSource, SchedulerPages

if TYPE_CHECKING:
    import ssl

    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.kube.transport.auth import Access
    from numalign.process.certificates import CertificateFiles
    from numalign.scheduler.main import Scheduler


LOOPBACK = ("127.0.0.1", "::1", "localhost")
CALLS_BESIDE = 32
"""Concurrent requests beside bindings: events, conditions, evictions, lists."""

ConfigFile = Annotated[
    str, typer.Option("--config", help="A KubeSchedulerConfiguration. Default: the scheduler's defaults.")
]
Certificate = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="The TLS certificate of the server. Default: no TLS on the loopback, self-signed elsewhere.",
    ),
]
Key = Annotated[
    str, typer.Option(metavar="FILE", help="The private key of the certificate, unless it is in the same file.")
]
OpenPaths = Annotated[
    str,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        help="Paths served without authorization, separated by commas; a trailing * includes all paths below.",
    ),
]
SelfSigned = Annotated[
    bool,
    typer.Option("--tls-self-signed", help="Use TLS with a self-signed certificate on the loopback, too."),
]
Verbosity = Annotated[int, typer.Option("-v", help="Log level; 4 and above is debug; can be changed at run time.")]


class Shown(NamedTuple):
    """The TLS context that the server uses, and the files that it came from."""

    context: ssl.SSLContext
    files: CertificateFiles | None


class Pages(NamedTuple):
    """Where the pages are served, and how."""

    address: str
    port: int
    shown: Shown | None
    """None: without TLS."""
    open_to_all: tuple[str, ...]


def run(
    config: ConfigFile = "",
    kubeconfig: Kubeconfig = "",
    bind_address: BindAddress = "127.0.0.1",
    port: Port = 10259,
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    self_signed: SelfSigned = False,
    open_paths: OpenPaths = "/healthz,/readyz,/livez",
    verbosity: Verbosity = 2,
    log_format: LogFormat = output.LogForm.TEXT,
) -> None:
    """Schedule pods, as leader or standby.

    Exit code: 0 after a signal, 1 if leadership was lost or something failed, 2 if it cannot start."""
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.kube.leader.leading import LeadershipLost
    from numalign.process import log

    log.start("json" if log_format is output.LogForm.JSON else "text", verbosity)
    read = configuration(config)
    if tls_certificate or tls_key:
        shown: Shown | None = from_files(tls_certificate, tls_key)
    else:
        shown = of_our_own(bind_address, always=self_signed)
    pages = Pages(bind_address, port, shown, tuple(filter(None, open_paths.split(","))))
    found = access.default(kubeconfig or read.client_connection.kubeconfig)
    try:
        with clock.event_loop_runner() as runner:
            runner.run(_served(read, found, pages))
    except LeadershipLost as problem:
        output.fail(str(problem), 1)
    except OSError as problem:
        output.fail(f"{bind_address}:{port} cannot be served: {problem.strerror or problem}")


def configuration(file: str, otherwise: dict[str, Any] | None = None) -> Configuration:
    """`otherwise`: what applies without a file. Default: the scheduler's defaults."""
    from numalign.cli import fileio
    from numalign.scheduler import main, settings

    if not file:
        return settings.read(otherwise, "defaults") if otherwise is not None else main.defaults()
    document = fileio.only(file)
    config = settings.read(document.value, document.place)
    for warning in config.warnings:
        output.warn(warning)
    return config


def from_files(certificate: str, key: str) -> Shown:
    from numalign.process.certificates import CertificateFiles, Unusable

    if not certificate:
        raise BadObject("scheduler run", key, "--tls-key", "is of no use alone; give --tls-certificate, too")
    try:
        files = CertificateFiles(Path(certificate), Path(key or certificate))
    except Unusable as problem:
        raise BadObject("scheduler run", certificate, "--tls-certificate", str(problem)) from None
    return Shown(files.context, files)


def of_our_own(address: str, *, always: bool = False) -> Shown | None:
    """A self-signed certificate; None: without TLS, on the loopback unless `always`."""
    if address in LOOPBACK and not always:
        return None

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


async def settled(scheduler: Scheduler) -> None:
    """Settles memory once the caches are synced, and again after the kernels are compiled."""
    from numalign.kube.clock import SystemClock
    from numalign.process import tasks
    from numalign.scheduler.compile import when_large

    cluster = scheduler.cluster
    await scheduler.watched.synced()
    tasks.settle()
    if await when_large(cluster.engine, lambda: cluster.nodes, SystemClock()):
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
    from numalign.scheduler.http import authz, pages
    from numalign.scheduler.main import Scheduler, Setup

    elect, limit = config.leader_election, config.client_connection
    terms = Terms(lease=elect.lease_duration, renew=elect.renew_deadline, retry=elect.retry_period)
    election = leading.election(elect.resource_name, elect.resource_namespace, terms) if elect.leader_elect else None
    instance = f"{config.profiles[0].scheduler_name}-{socket.gethostname()}"
    async with AsyncExitStack() as stack:
        bucket = Bucket(limit.qps, limit.burst) if limit.qps else None
        limits = Limits(connections=settings.ours(config).parallel_binds + CALLS_BESIDE)
        client = await stack.enter_async_context(Client(access, limits, bucket=bucket))
        elector = await stack.enter_async_context(Client(access))
        scheduler = Scheduler(Setup(config=config, instance=instance), client, election)
        if served.port:
            guard = None
            if served.shown is not None:
                guard = await stack.enter_async_context(authz.guarding(access, served.open_to_all))
            routes = serve.Pages(pages.pages(scheduler, config, election), guard)
            context = served.shown.context if served.shown is not None else None
            await stack.enter_async_context(serve.serving(routes, (served.address, served.port), context))
        beside: dict[str, tasks.Part] = {
            "settling": settled(scheduler),
        }
        if served.shown is not None and served.shown.files is not None:
            beside["certificate"] = served.shown.files.follow()
        await tasks.until_signalled(tasks.together(scheduler.run(elector), beside))


DIFFERS = 1
GZIP = ".gz"

Pod = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Show one pod: its history and its state.")]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="Show one node: its zones and their pods.")]
Nodes = Annotated[bool, typer.Option("--nodes", help="List every node.")]
Written = Annotated[
    str,
    typer.Option("--file", "-f", metavar="FILE", help="The file to write; compressed if it ends in .gz; - is stdout."),
]
Dump = Annotated[str, typer.Argument(metavar="FILE", help="A scheduler's dump, or what kubectl prints of a cluster.")]
Whose = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="The pod whose decision is repeated.")]
There = Annotated[
    str, typer.Option("--node", metavar="NAME", help="Show one node in depth: its reason, score and zones.")
]


@bundled
def state(
    pages: SchedulerPages, pod: Pod = "", node: Node = "", nodes: Nodes = False, fmt: Output = Format.TABLE
) -> None:
    """Show what a running scheduler knows: which pods wait and why, which are being bound, and what nodes have free.

    Exit code: 0, or 2 if the scheduler cannot be asked or does not know the pod or node."""
    from numalign.cli.results import schedulerpages

    query = {"pod": _qualified(pod), "node": node, "nodes": "all" if nodes else ""}
    answer = _page(pages, "/debug/state", **{name: value for name, value in query.items() if value})
    if fmt is not Format.TABLE:
        return output.show(output.structured(answer, fmt))
    try:
        drawn = schedulerpages.state(answer)
    except (LookupError, TypeError, AttributeError, ValueError):
        output.fail(f"Scheduler {pages.server}: the state has an unknown form; -o json prints it as it is")
    if query["pod"] and not schedulerpages.knows_pod(answer):
        output.fail(f"Scheduler {pages.server}: knows no pod {query['pod']}; it remembers pods that it tried recently")
    if node and not schedulerpages.knows_node(answer):
        output.fail(f"Scheduler {pages.server}: knows no node {node}")
    output.show(drawn)


@bundled
def dump(file: Written, pages: SchedulerPages) -> None:
    """Write everything that a running scheduler decides by to a file, to inspect it or repeat decisions elsewhere.

    The file has no secrets: of a pod, only the fields that decisions use. Exit code: 0, or 2 if the scheduler cannot
    be asked."""

    text = sources.fetch(pages.server, sources.DUMP, pages)
    if file == "-":
        return output.show(text.decode())
    _write(file, text)


def repeat(file: Dump, pod: Whose, node: There = "", fmt: Output = Format.TABLE) -> None:
    """Repeat one decision of a dump and compare it with what the scheduler decided.

    Exit code: 0 if it is the same or was not recorded, 1 if it differs, 2 if the file cannot be used."""
    from numalign.cli.results import schedulerpages
    from numalign.scheduler.explain import replay

    again = replay.repeated(sources.taken(ClusterSource(snapshot=file)), _qualified(pod), node)
    for left_out in again.problems:
        output.warn(left_out)
    is_table = fmt is Format.TABLE
    output.show(schedulerpages.replay_text(again) if is_table else output.structured(schedulerpages.plain(again), fmt))
    if again.agrees is False:
        raise typer.Exit(DIFFERS)


def _qualified(pod: str) -> str:
    return pod if not pod or "/" in pod else f"default/{pod}"


def _page(pages: SchedulerPages, path: str, **query: str) -> dict[str, Any]:
    import msgspec

    try:
        answer: dict[str, Any] = msgspec.json.decode(sources.fetch(pages.server, path, pages, **query), type=dict)
    except msgspec.MsgspecError:
        output.fail(f"Scheduler {pages.server}: does not answer with a state; is it a numalign scheduler?")
    return answer


def _write(file: str, text: bytes) -> None:
    from numalign.scheduler.snapshot import files

    try:
        _replace(Path(file), files.packed(text) if file.endswith(GZIP) else text)
    except (OSError, ValueError, RuntimeError) as problem:
        output.fail(f"{file} cannot be written: {getattr(problem, 'strerror', None) or 'not a file name'}")


def _replace(path: Path, content: bytes) -> None:
    """Replaces the file at once when all of it is written; a device is written directly."""
    from numalign.process import privatefile

    if path.is_relative_to("/dev") or (path.exists() and not path.is_file()):
        path.write_bytes(content)
    else:
        privatefile.write(path, content)


REFUSED = 1

app = typer.Typer(no_args_is_help=True)

app.command("run", epilog="Example: numalign scheduler run --config scheduler.yaml")(run)
app.command("state", epilog="Example: numalign scheduler state --pod default/web")(state)
app.command("dump", epilog="Example: numalign scheduler dump -f now.json.gz")(dump)
app.command("repeat", epilog="Example: numalign scheduler repeat now.json.gz --pod default/web")(repeat)

File = Annotated[str, typer.Argument(metavar="FILE", help="A KubeSchedulerConfiguration; - is stdin.")]


@app.callback()
def scheduler() -> None:
    """Run the scheduler, and inspect a running one."""


@app.command("check-config", epilog="Example: numalign scheduler check-config scheduler.yaml")
def check_config(file: File, fmt: Output = Format.TABLE) -> None:
    """Show what a scheduler with this configuration would do, or what is wrong with it.

    Exit code: 0 if it can be used, 1 if it cannot, 2 if the file cannot be read."""
    from numalign.api import errors
    from numalign.cli.results import schedulerpages

    try:
        config = _read(file)
    except errors.BadObject as problem:
        # Errors in a file name a field or a line; errors about the file itself do not.
        output.fail(str(problem), REFUSED if problem.field else 2)
    for warning in config.warnings:
        output.warn(warning)
    output.show(
        schedulerpages.config_text(config)
        if fmt is Format.TABLE
        else output.structured(schedulerpages.config_output(config), fmt)
    )


def _read(file: str) -> Configuration:
    from numalign.cli import fileio
    from numalign.scheduler import settings

    document = fileio.only(file)
    return settings.read(document.value, document.place)
