"""`numalign extender`: answers a stock kube-scheduler about zones, and writes the configuration that makes it ask.

`run` is a process of its own beside kube-scheduler. It follows the cluster as the scheduler does, and schedules nothing
itself. The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.commands import scheduler as schedulers
from numalign.cli.commands.scheduler import Certificate, ConfigFile, Key, Verbosity
from numalign.cli.options import BindAddress, Kubeconfig, LogFormat
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.cli.commands.scheduler import Shown
    from numalign.kube.transport.auth import Access

app = typer.Typer(no_args_is_help=True)

ClientAuthority = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Certificates of authorities that issue client certificates. Without it clients need a bearer token and"
        " the right to POST, and kube-scheduler sends none.",
    ),
]
ExtenderPort = Annotated[int, typer.Option(min=1, max=65535, help="Port of the extender.")]
PagesPort = Annotated[int, typer.Option(min=0, max=65535, help="Port of health and metrics; 0: do not serve.")]
Hold = Annotated[
    float,
    typer.Option(min=0.1, max=600, metavar="SECONDS", help="How long a pod stays charged whose binding is not seen."),
]


@app.callback()
def extender() -> None:
    """Let a stock kube-scheduler ask about NUMA zones, over its extender protocol."""


@app.command(epilog="Example: numalign extender run --tls-certificate tls.crt --tls-key tls.key --client-ca ca.crt")
def run(
    config: ConfigFile = "",
    kubeconfig: Kubeconfig = "",
    bind_address: BindAddress = "127.0.0.1",
    port: ExtenderPort = 8443,
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    client_ca: ClientAuthority = "",
    pages_port: PagesPort = 10259,
    hold: Hold = 5.0,
    verbosity: Verbosity = 2,
    log_format: LogFormat = output.LogForm.TEXT,
) -> None:
    """Answer kube-scheduler's questions about pods and zones until a signal ends the process.

    Exit code: 0 after a signal, 1 if something failed, 2 if it cannot start."""
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.process import log
    from numalign.scheduler.extender import stanza

    log.start("json" if log_format is output.LogForm.JSON else "text", verbosity)
    read = schedulers.configuration(config, stanza.defaults())
    if not tls_certificate:
        why = "is missing: kube-scheduler and the extender know each other by certificates"
        raise BadObject("extender run", bind_address, "--tls-certificate", why)
    shown = schedulers.from_files(tls_certificate, tls_key)
    if client_ca:
        _require_clients(shown.context, client_ca)
    found = access.default(kubeconfig or read.client_connection.kubeconfig)
    try:
        with clock.event_loop_runner() as runner:
            runner.run(
                _served(read, found, shown, bind_address, (port, pages_port), hold, authenticated=bool(client_ca))
            )
    except OSError as problem:
        output.fail(f"{bind_address}:{port} cannot be served: {problem.strerror or problem}")


def _require_clients(context: ssl.SSLContext, authority: str) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ssl.SSLError) as problem:
        raise BadObject("extender run", authority, "--client-ca", f"cannot be used: {problem}") from None
    context.verify_mode = ssl.CERT_REQUIRED


async def _served(
    config: Configuration,
    access: Access,
    shown: Shown,
    address: str,
    ports: tuple[int, int],
    hold: float,
    *,
    authenticated: bool,
) -> None:
    from contextlib import AsyncExitStack

    from numalign.kube.client import Client
    from numalign.process import serve, tasks
    from numalign.process.http import listen
    from numalign.process.http.connection import Served
    from numalign.scheduler.http import authz, extenderserver, pages
    from numalign.scheduler.main import Scheduler, Setup

    instance = f"{config.profiles[0].scheduler_name}-{socket.gethostname()}"
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(access))
        scheduler = Scheduler(Setup(config=config, instance=instance, schedules=False), client)
        answers = scheduler.extender(hold)
        guard = await stack.enter_async_context(authz.guarding(access))
        server = extenderserver.ExtenderServer(
            answers,
            scheduler.metrics,
            client.sender.clock,
            is_synced=lambda: scheduler.watched.has_synced,
            guard=None if authenticated else guard,
        )
        served = Served(server, extenderserver.LIMITS)
        await stack.enter_async_context(listen.listening(served, (address, ports[0]), shown.context))
        if ports[1]:
            routes = serve.Pages(pages.pages(scheduler, config, None), guard)
            own = schedulers.of_our_own(address)
            context = own.context if own is not None else None
            await stack.enter_async_context(serve.serving(routes, (address, ports[1]), context))
        beside: dict[str, tasks.Part] = {"settling": schedulers.settled(scheduler)}
        if shown.files is not None:
            beside["certificate"] = shown.files.follow()
        await tasks.until_signalled(tasks.together(scheduler.follow(answers), beside))


Url = Annotated[str, typer.Option(help="Where kube-scheduler reaches the extender: https://HOST:PORT.")]
File = Annotated[
    str, typer.Option("--file", "-f", metavar="FILE", help="A KubeSchedulerConfiguration to merge it into; - is stdin.")
]
Authority = Annotated[
    str,
    typer.Option("--certificate-authority", metavar="PATH", help="The extender's CA, on the host of kube-scheduler."),
]
ClientCertificate = Annotated[
    str, typer.Option(metavar="PATH", help="kube-scheduler's client certificate, on its host.")
]
ClientKey = Annotated[str, typer.Option(metavar="PATH", help="The key of the client certificate, on its host.")]
ServerName = Annotated[str, typer.Option(help="The name in the extender's certificate. Default: the host of the URL.")]
Bind = Annotated[bool, typer.Option("--bind/--no-bind", help="Let the extender bind the pods that it is asked about.")]
Ignorable = Annotated[
    bool, typer.Option("--ignorable", help="Schedule without the extender where it does not answer; pods may bounce.")
]
Timeout = Annotated[str, typer.Option(metavar="DURATION", help="How long kube-scheduler waits for an answer.")]
Resources = Annotated[
    list[str],
    typer.Option(
        "--managed-resource",
        metavar="NAME",
        help="Ask only about pods that request this extended resource; may be repeated. Default: about all pods.",
    ),
]
Fmt = Annotated[Format, typer.Option("--output", "-o", help="Output format: yaml or json.")]


@app.command(
    epilog="Example: numalign extender config --url https://127.0.0.1:8443"
    " --certificate-authority /etc/kubernetes/pki/ca.crt -f scheduler.yaml"
)
def config(
    url: Url,
    file: File = "",
    authority: Authority = "",
    client_certificate: ClientCertificate = "",
    client_key: ClientKey = "",
    server_name: ServerName = "",
    bind: Bind = True,
    ignorable: Ignorable = False,
    timeout: Timeout = "2s",
    resources: Resources = [],  # noqa: B006
    fmt: Fmt = Format.YAML,
) -> None:
    """Print a KubeSchedulerConfiguration that makes kube-scheduler ask the extender.

    Exit code: 0, or 2 if an option or the file cannot be used."""
    from numalign.cli import fileio
    from numalign.scheduler.extender import stanza

    options = stanza.checked(
        stanza.ExtenderOptions(
            url=url,
            authority=authority,
            certificate=client_certificate,
            key=client_key,
            server_name=server_name,
            bind=bind,
            ignorable=ignorable,
            timeout=timeout,
            resources=tuple(resources),
        )
    )
    entry = stanza.stanza(options)
    if not file:
        made = stanza.alone(entry)
    else:
        document = fileio.only(file)
        made = stanza.merged(document.value, document.place, entry)
    output.show(output.structured(made, Format.YAML if fmt is Format.TABLE else fmt))
