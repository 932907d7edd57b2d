"""`numalign extender`: answers a stock kube-scheduler about zones, and writes the configuration that makes it ask.

`run` is a process of its own beside kube-scheduler. It follows the cluster as the scheduler does, and schedules nothing
itself. The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign.cli import output, servers
from numalign.cli.commands import scheduler as schedulers
from numalign.cli.commands.scheduler import ConfigFile, Verbosity
from numalign.cli.options import BindAddress, Kubeconfig, LogFormat
from numalign.cli.output import Format
from numalign.cli.servers import (
    EXTENDER_PORT,
    HOLD,
    Certificate,
    ClientAuthority,
    EvictsChoice,
    ExpanderPort,
    ExtenderPort,
    Hold,
    Key,
    Preempting,
    ProvisioningClass,
)

app = typer.Typer(no_args_is_help=True)

PagesPort = Annotated[
    int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of health and metrics; 0: do not serve.")
]


@app.callback()
def extender() -> None:
    """Let a stock kube-scheduler ask about NUMA zones, over its extender protocol."""


@app.command(epilog="Example: numalign extender run --tls-certificate tls.crt --tls-key tls.key --client-ca ca.crt")
def run(
    config: ConfigFile = "",
    kubeconfig: Kubeconfig = "",
    bind_address: BindAddress = "127.0.0.1",
    port: ExtenderPort = EXTENDER_PORT,
    tls_certificate: Certificate = "",
    tls_key: Key = "",
    client_ca: ClientAuthority = "",
    pages_port: PagesPort = 10259,
    hold: Hold = HOLD,
    preemption: Preempting = EvictsChoice.NONE,
    expander_port: ExpanderPort = 0,
    provisioning_class: ProvisioningClass = "",
    verbosity: Verbosity = 2,
    log_format: LogFormat = output.LogForm.TEXT,
) -> None:
    """Answer kube-scheduler's questions about pods and zones until a signal ends the process.

    Exit code: 0 after a signal, 1 if something failed, 2 if it cannot start."""
    from numalign.scheduler.extender import stanza
    from numalign.scheduler.http.serving import PagesEndpoint, SchedulerProcess

    servers.start_log(log_format, verbosity)
    read = schedulers.configuration(config, stanza.defaults())
    terms = servers.provisioning("extender run", provisioning_class)
    process = SchedulerProcess(
        config=read,
        access=servers.access(kubeconfig, read),
        pages=PagesEndpoint(
            address=bind_address, port=pages_port, certificate=servers.of_our_own("extender run", bind_address)
        )
        if pages_port
        else None,
        extender=servers.extender(
            "extender run", (bind_address, port), (tls_certificate, tls_key), client_ca, hold, preemption
        ),
        expander=servers.expander("extender run", (bind_address, expander_port), (tls_certificate, tls_key))
        if expander_port
        else None,
        schedules=False,
        provisioning=terms,
    )
    servers.run(process, f"{bind_address}:{port}")


Url = Annotated[str, typer.Option(metavar="URL", help="Where kube-scheduler reaches the extender: https://HOST:PORT.")]
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
ServerName = Annotated[
    str, typer.Option(metavar="NAME", help="The name in the extender's certificate. Default: the host of the URL.")
]
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
    if not file:
        made = stanza.alone(options)
    else:
        document = fileio.only(file)
        made = stanza.merged(document.value, document.place, options)
    output.show(output.structured(made, Format.YAML if fmt is Format.TABLE else fmt))
