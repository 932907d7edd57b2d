"""`numalign scheduler`: runs the scheduler, checks its configuration, and inspects a running one.

`run` is the scheduler process: it ends on a signal or when it loses its lease. `state` and `dump` read the pages of a
running scheduler, `repeat` makes one decision of a dump again. The commands import what they call when they run, so
that help stays fast."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.cli import amounts, dashboards, output, servers, sources
from numalign.cli.options import (
    INTERVAL,
    BindAddress,
    Interval,
    Kubeconfig,
    ListOutput,
    LogFormat,
    Output,
    Port,
    Watch,
    bundled,
)
from numalign.cli.output import Format, ListFormat
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
from numalign.cli.sources import ClusterSource, SchedulerPages

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration
    from numalign.scheduler.http.serving import MountScheduler, Recording


ConfigFile = Annotated[
    str,
    typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration. Default: the scheduler's defaults."),
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
Verbosity = Annotated[
    int,
    typer.Option(
        "--verbosity",
        "-v",
        metavar="N",
        min=0,
        max=9999,
        help="Log level; 4 and above is debug; `numalign scheduler log set` changes it at run time.",
    ),
]


class ExtenderOptions(Struct, frozen=True):
    """Whether kube-scheduler's questions are answered, too, and where."""

    extender: Annotated[
        bool,
        typer.Option("--extender", help="Answer kube-scheduler's questions, too; see numalign extender config."),
    ] = False
    extender_port: ExtenderPort = EXTENDER_PORT
    client_ca: ClientAuthority = ""
    hold: Hold = HOLD
    preemption: Preempting = EvictsChoice.NONE


RecordFolder = Annotated[
    str, typer.Option("--record", metavar="DIR", help="Record what the scheduler sees and decides into this folder.")
]
RecordSize = Annotated[str, typer.Option(metavar="SIZE", help="The size of the recording; the oldest part is deleted.")]
RecordAge = Annotated[str, typer.Option(metavar="DURATION", help="How long the recording reaches back at most.")]
LEAST_RECORDED, LEAST_SECONDS = 1 << 20, 60.0
TracingEndpoint = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Send a trace of each pod to this OpenTelemetry collector (OTLP over gRPC): http://HOST:4317 or "
        "https://HOST:4317. Needs numalign[tracing].",
    ),
]
TracingRatio = Annotated[
    float, typer.Option(metavar="SHARE", min=0.0, max=1.0, help="The share of all pods whose traces are sent.")
]


@bundled
def run(
    extender: ExtenderOptions,
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
    expander_port: ExpanderPort = 0,
    provisioning_class: ProvisioningClass = "",
    record: RecordFolder = "",
    record_size: RecordSize = "256Mi",
    record_age: RecordAge = "24h",
    tracing_endpoint: TracingEndpoint = "",
    tracing_ratio: TracingRatio = 1.0,
) -> None:
    """Schedule pods, as leader or standby.

    With --extender, the process also answers a kube-scheduler that schedules pods of other names. Exit code: 0 after a
    signal, 1 if leadership was lost or something failed, 2 if it cannot start."""
    from numalign.process import traces
    from numalign.scheduler.http.serving import PagesEndpoint, SchedulerProcess

    servers.start_log(log_format, verbosity)
    read = configuration(config)
    terms = servers.provisioning("scheduler run", provisioning_class)
    shown = (
        servers.from_files("scheduler run", tls_certificate, tls_key)
        if tls_certificate or tls_key
        else servers.of_our_own("scheduler run", bind_address, always=self_signed)
    )
    open_to_all = tuple(filter(None, open_paths.split(",")))
    recording = _recording(record, record_size, record_age)
    process = SchedulerProcess(
        config=read,
        recording=recording,
        tracing=traces.collector(tracing_endpoint, tracing_ratio) if tracing_endpoint else None,
        access=servers.access(kubeconfig, read),
        pages=PagesEndpoint(
            address=bind_address,
            port=port,
            certificate=shown,
            open_to_all=open_to_all,
            mounted=_mounted(recording),
        )
        if port
        else None,
        extender=servers.extender(
            "scheduler run",
            (bind_address, extender.extender_port),
            (tls_certificate, tls_key),
            extender.client_ca,
            extender.hold,
            extender.preemption,
        )
        if extender.extender
        else None,
        expander=servers.expander("scheduler run", (bind_address, expander_port), (tls_certificate, tls_key))
        if expander_port
        else None,
        provisioning=terms,
    )
    servers.run(process, f"{bind_address}:{port}")


def _recording(folder: str, size: str, age: str) -> Recording | None:
    from numalign.scheduler.http.serving import Recording
    from numalign.scheduler.record.recorder import RecordingLimits

    limits = RecordingLimits(
        size=amounts.size(size, "scheduler run", "--record-size"),
        age=amounts.seconds(age, "scheduler run", "--record-age"),
    )
    if limits.size < LEAST_RECORDED or limits.age < LEAST_SECONDS:
        raise BadObject("scheduler run", folder, "--record-size", "is below 1Mi, or --record-age is below 1m")
    return Recording(folder=Path(folder), limits=limits) if folder else None


def _mounted(recording: Recording | None) -> dict[str, MountScheduler]:
    folder = recording.folder if recording is not None else None
    return {dashboards.PATH: partial(dashboards.of_scheduler, recording=folder)} if dashboards.is_installed() else {}


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


DIFFERS = 1
GZIP = ".gz"

Pod = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Show one pod: its history and its state.")]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="Show one node: its zones and their pods.")]
Nodes = Annotated[bool, typer.Option("--nodes", help="List every node.")]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Only pods of this namespace. Default: all.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces, the default.")]
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
    pages: SchedulerPages,
    pod: Pod = "",
    node: Node = "",
    nodes: Nodes = False,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    watch: Watch = False,
    interval: Interval = INTERVAL,
    fmt: ListOutput = ListFormat.TABLE,
) -> None:
    """Show what a running scheduler knows: which pods wait and why, which are being bound, and what nodes have free.

    Exit code: 0, or 2 if the scheduler cannot be asked or does not know the pod or node."""
    from numalign.cli.results import schedulerpages

    pages = pages.found()
    query = {"pod": qualified(pod, namespace or "default"), "node": node, "nodes": "all" if nodes else ""}
    inside = "" if all_namespaces or pod else namespace

    def look() -> dict[str, Any]:
        found = _page(pages, "/debug/state", **{name: value for name, value in query.items() if value})
        return dict(schedulerpages.within(found, inside)) if inside else found

    try:
        answer = look()
        drawn = _state_text(answer, fmt)
    except (LookupError, TypeError, AttributeError, ValueError):
        output.fail(f"Scheduler {pages.server}: the state has an unknown form; -o json prints it as it is")
    if query["pod"] and not schedulerpages.knows_pod(answer):
        output.fail(f"Scheduler {pages.server}: knows no pod {query['pod']}; it remembers pods that it tried recently")
    if node and not schedulerpages.knows_node(answer):
        output.fail(f"Scheduler {pages.server}: knows no node {node}")
    output.show(drawn)
    while watch:
        time.sleep(interval)
        before, answer = answer, look()
        new = schedulerpages.news(before, answer)
        if new:
            as_it_is = fmt in (ListFormat.JSON, ListFormat.YAML)
            output.show(output.structured(answer, fmt) if as_it_is else _printable(new))


def _state_text(answer: Mapping[str, Any], fmt: ListFormat) -> str:
    from numalign.cli.results import schedulerpages

    if fmt in (ListFormat.JSON, ListFormat.YAML):
        return output.structured(answer, fmt)
    if fmt is ListFormat.NAME:
        return _printable([f"pod/{each.partition('/')[2]}" for each in schedulerpages.names(answer)])
    return schedulerpages.state(answer, wide=fmt is ListFormat.WIDE)


def _printable(lines: list[str]) -> str:
    return "\n".join(map(output.printable, lines))


@bundled
def dump(file: Written, pages: SchedulerPages) -> None:
    """Write everything that a running scheduler decides by to a file, to inspect it or repeat decisions elsewhere.

    The file has no secrets: of a pod, only the fields that decisions use. Exit code: 0, or 2 if the scheduler cannot
    be asked."""
    pages = pages.found()
    text = sources.fetch(pages.server, sources.DUMP, pages)
    if file == "-":
        return output.show(text.decode())
    _write(file, text)


def repeat(file: Dump, pod: Whose, node: There = "", fmt: Output = Format.TABLE) -> None:
    """Repeat one decision of a dump and compare it with what the scheduler decided.

    Exit code: 0 if it is the same or was not recorded, 1 if it differs, 2 if the file cannot be used."""
    from numalign.cli.results import schedulerpages
    from numalign.scheduler.explain import replay

    again = replay.repeated(sources.taken(ClusterSource(snapshot=file)), qualified(pod), node)
    for left_out in again.problems:
        output.warn(left_out)
    is_table = fmt is Format.TABLE
    output.show(schedulerpages.replay_text(again) if is_table else output.structured(schedulerpages.plain(again), fmt))
    if again.agrees is False:
        raise typer.Exit(DIFFERS)


def qualified(pod: str, namespace: str = "default") -> str:
    """namespace/name of a pod that was given with or without its namespace."""
    return pod if not pod or "/" in pod else f"{namespace}/{pod}"


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


FLAGS = "/debug/flags/v"
LONGEST = 86400

LogPod = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Only lines about this pod.")]
LogNode = Annotated[str, typer.Option("--node", metavar="NAME", help="Only lines about this node.")]
Component = Annotated[
    str, typer.Option("--component", metavar="NAME", help="Only lines of this part, such as scheduler.bind or kube.")
]
Lasting = Annotated[
    str,
    typer.Option(
        "--for", metavar="DURATION", help="How long, such as 90s, 10m or 2h; 0 ends it. Default: 10m, or for good."
    ),
]


@bundled
def log_set(
    pages: SchedulerPages,
    verbosity: Annotated[
        int, typer.Option("--verbosity", "-v", metavar="N", min=0, max=9999, help="4 and above is debug.")
    ],
    pod: LogPod = "",
    node: LogNode = "",
    component: Component = "",
    lasting: Lasting = "",
) -> None:
    """Set what a running scheduler logs: all of it, or the lines about one pod, one node or one component.

    Without --pod, --node, --component and --for, the verbosity of the process changes until it ends. Exit code: 0, or 2
    if the scheduler cannot be asked."""
    pages = pages.found()
    asked = {"pod": qualified(pod), "node": node, "component": component}
    query = {name: value for name, value in asked.items() if value}
    if lasting:
        query["seconds"] = str(_whole_seconds(lasting))
    output.show(sources.put(pages.server, FLAGS, pages, f"{verbosity}".encode(), **query).decode().strip())


@bundled
def log_show(pages: SchedulerPages, fmt: Output = Format.TABLE) -> None:
    """Show the verbosity of a running scheduler, and for what it is another one. Exit code: 0, or 2."""
    from numalign.cli.results import schedulerpages

    pages = pages.found()
    answer = _page(pages, FLAGS)
    output.show(schedulerpages.verbosity(answer) if fmt is Format.TABLE else output.structured(answer, fmt))


def _whole_seconds(text: str) -> int:
    from numalign.api.decode import fields
    from numalign.simulator.scenarios import durations

    written = fields.root(int(text) if text.isdecimal() and len(text) < 9 else text, "Option", "--for")
    seconds = round(durations.read(written))
    if seconds > LONGEST:
        raise BadObject("Option", "--for", "", "a rule lasts for a day at most, so that none is forgotten")
    return seconds


REFUSED = 1

app = typer.Typer(no_args_is_help=True)
shortened = typer.Typer()
logs = typer.Typer(no_args_is_help=True)
app.add_typer(logs, name="log")
logs.command("set", epilog="Example: numalign scheduler log set -v 4 --pod default/web --for 10m")(log_set)
logs.command("show", epilog="Example: numalign scheduler log show")(log_show)


@logs.callback()
def log() -> None:
    """Show or set what a running scheduler logs, without restarting it."""


app.command("run", epilog="Example: numalign scheduler run --config scheduler.yaml")(run)
app.command("state", epilog="Example: numalign scheduler state --pod default/web")(state)
app.command("dump", epilog="Example: numalign scheduler dump -f now.json.gz")(dump)
app.command("repeat", epilog="Example: numalign scheduler repeat now.json.gz --pod default/web")(repeat)
shortened.command("state", epilog="Example: kubectl numalign state --pod default/web")(state)

File = Annotated[str, typer.Argument(metavar="FILE", help="A KubeSchedulerConfiguration; - is stdin.")]


@app.callback()
def scheduler() -> None:
    """Run the scheduler, and inspect a running one."""


@app.command("check-config", epilog="Example: numalign scheduler check-config scheduler.yaml")
def check_config(file: File, fmt: Output = Format.TABLE) -> None:
    """Show what a scheduler with this configuration would do, or all that is wrong with it.

    Exit code: 0 if it can be used, 1 if it cannot, 2 if the file cannot be read."""
    from numalign.api import errors
    from numalign.cli.results import schedulerpages

    try:
        config = _read(file)
    except errors.BadObject as problem:
        # Errors in a file name a field or a line; errors about the file itself do not.
        *others, last = problem.every
        for each in others:
            output.say(f"numalign: {output.printable(str(each))}")
        output.fail(str(last), REFUSED if problem.field else 2)
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
