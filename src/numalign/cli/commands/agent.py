"""`numalign agent`: publishes, prints or draws a node's report, and collects the reports of deleted nodes.

The work is done by `agent.main` and `agent.publish.gc`. The commands import them when they run, so that help stays
fast."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from numalign import __version__
from numalign.cli import output
from numalign.cli.options import BindAddress, Kubeconfig, LogFormat, Output, Port, Verbosity, bundled
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.agent.enforce.enforcer import Enforcement
    from numalign.agent.inventory.exclusions import Exclusions
    from numalign.agent.inventory.snapshot import Snapshot
    from numalign.agent.main import Places, Setup
    from numalign.agent.publish.gc import Swept
    from numalign.kube.transport.auth import Access

app = typer.Typer(no_args_is_help=True)

MOST_SECONDS = 1e9
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"


def _seconds(given: float) -> float:
    """Refuses NaN, which no range check refuses, and values that can only be a mistake."""
    if not given <= MOST_SECONDS:
        raise typer.BadParameter(f"{given} is not a number of seconds up to {MOST_SECONDS:.0f}.")
    return given


Node = Annotated[
    str,
    typer.Option("--node-name", metavar="NAME", envvar="NODE_NAME", help="Name of the Node. Default: the host name."),
]
Host = Annotated[Path, typer.Option("--host-root", metavar="DIR", help="Where the host's root is mounted.")]
Root = Annotated[str, typer.Option("--kubelet-dir", metavar="DIR", help="The kubelet's root folder on the host.")]
DevicePlugins = Annotated[
    str,
    typer.Option(
        "--device-plugins-dir",
        metavar="DIR",
        help="The device manager's folder on the host, which is the same for all kubelets.",
    ),
]
Config = Annotated[
    str,
    typer.Option(
        "--kubelet-config", metavar="FILE", help="The kubelet's configuration file. Default: found on the host."
    ),
]
Socket = Annotated[
    str,
    typer.Option(
        "--podresources-socket", metavar="PATH", help="The Pod Resources socket. Default: in the kubelet's folder."
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        "--reference-container",
        metavar="NS/POD/NAME",
        help="A container without exclusive CPUs, for kubelets before 1.23.",
    ),
]
Exclude = Annotated[
    str,
    typer.Option("--exclude", metavar="FILE", help="Resources that modes rte and nfd leave out, as a file of theirs."),
]
Notify = Annotated[
    str, typer.Option("--notify-file", metavar="FILE", help="A file that others touch to trigger an update.")
]
Untaint = Annotated[
    bool,
    typer.Option(
        "--remove-startup-taint",
        help="Remove the taint numalign.io/no-report from the Node after the first report.",
    ),
]
NoFingerprint = Annotated[bool, typer.Option("--no-fingerprint", help="Publish no fingerprint of the node's pods.")]
NoPublish = Annotated[
    bool, typer.Option("--no-publish", help="Read the node and publish nothing: the last report stays as it is.")
]
Configz = Annotated[bool, typer.Option("--configz", help="Read the configuration from the kubelet's own server.")]
KubeletAddress = Annotated[
    str,
    typer.Option(
        "--kubelet-address", envvar="NODE_ADDRESS", metavar="HOST[:PORT]", help="The kubelet's server, for --configz."
    ),
]
KubeletAuthority = Annotated[
    str,
    typer.Option(
        "--kubelet-certificate-authority",
        metavar="FILE",
        help="Verifies the kubelet's server. Default: pki/kubelet.crt in the kubelet's folder.",
    ),
]


Direct = Annotated[
    bool,
    typer.Option(
        "--direct-mode",
        help="Enforce the decisions of direct mode as an NRI plugin, and advertise the mode where that works.",
    ),
]
NriSocket = Annotated[
    str, typer.Option("--nri-socket", metavar="PATH", help="NRI's socket on the host, for --direct-mode.")
]
CriSocket = Annotated[
    str,
    typer.Option(
        "--cri-socket",
        metavar="PATH",
        help="The container runtime's socket on the host, for --direct-mode where NRI is off: containers are changed "
        "after they have started. Default: none.",
    ),
]
Patience = Annotated[
    float,
    typer.Option(
        "--direct-wait",
        metavar="SECONDS",
        min=0.0,
        callback=_seconds,
        help="How long a container waits whose decision cannot be applied, before it runs in the shared pools.",
    ),
]
DirectDevices = Annotated[
    str,
    typer.Option(
        "--direct-devices",
        metavar="FILE",
        help="Devices to hand out by minor number, in the format of numalign device-plugin.",
    ),
]
FindDevices = Annotated[
    bool,
    typer.Option(
        "--find-devices",
        help="For --direct-mode: hand out the node's GPUs and RDMA NICs in parts and together.",
    ),
]
TrustRuntime = Annotated[
    bool,
    typer.Option(
        "--trust-runtime",
        help="Acknowledge what the container runtime accepted, without a look at what the kernel reports.",
    ),
]


class ReportForm(StrEnum):
    """What `--mode` accepts; a test holds it against the agent."""

    OWN = "own"
    RTE = "rte"
    NFD = "nfd"


class ReportVersion(StrEnum):
    """What `--api-version` accepts; a test holds it against the API."""

    V1ALPHA2 = "v1alpha2"
    V1ALPHA1 = "v1alpha1"


ModeName = Annotated[ReportForm, typer.Option("--mode", help="Form of the report: own, or that of another publisher.")]
VersionName = Annotated[ReportVersion, typer.Option("--api-version", help="Version of the NodeResourceTopology API.")]
Period = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=1.0,
        max=300.0,
        callback=_seconds,
        help="Time between two updates when nothing changes; at most 300 pass between two heartbeats.",
    ),
]
Interval = Annotated[
    float, typer.Option(metavar="SECONDS", min=1.0, callback=_seconds, help="Time between two sweeps.")
]
Grace = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.0, callback=_seconds, help="Time that a report may exist without its Node."),
]


@app.callback()
def agent() -> None:
    """Publish the zones of a node: what its kubelet has free, and what pods hold."""


class AgentOptions(Struct, frozen=True, kw_only=True):
    """The options of `numalign agent run`."""

    node_name: Node = ""
    kubeconfig: Kubeconfig = ""
    mode: ModeName = ReportForm.OWN
    api_version: VersionName = ReportVersion.V1ALPHA2
    period: Period = 60.0
    host_root: Host = Path("/")
    kubelet_dir: Root = "/var/lib/kubelet"
    device_plugins_dir: DevicePlugins = DEVICE_PLUGINS
    kubelet_config: Config = ""
    podresources_socket: Socket = ""
    reference_container: Reference = ""
    exclude: Exclude = ""
    notify_file: Notify = ""
    configz: Configz = False
    kubelet_address: KubeletAddress = "127.0.0.1"
    kubelet_certificate_authority: KubeletAuthority = ""
    bind_address: BindAddress = "127.0.0.1"
    remove_startup_taint: Untaint = False
    direct_mode: Direct = False
    nri_socket: NriSocket = "/var/run/nri/nri.sock"
    cri_socket: CriSocket = ""
    direct_wait: Patience = 60.0
    direct_devices: DirectDevices = ""
    find_devices: FindDevices = False
    trust_runtime: TrustRuntime = False
    no_fingerprint: NoFingerprint = False
    no_publish: NoPublish = False
    port: Port = 0
    verbosity: Verbosity = 2
    log_format: LogFormat = output.LogForm.TEXT


@app.command("run", epilog="Example: NODE_NAME=worker-1 numalign agent run --port 10261")
@bundled
def run(options: AgentOptions) -> None:
    """Publish the node's NodeResourceTopology and keep it up to date until a signal ends the process.

    Exit code: 0 after a signal, 2 if the agent cannot start."""
    from msgspec import structs

    from numalign.agent.inventory import snapshot
    from numalign.agent.main import Setup
    from numalign.agent.publish.publish import Manner
    from numalign.agent.triggers import triggers
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.process import log

    log.start("json" if options.log_format is output.LogForm.JSON else "text", options.verbosity)
    instance, node = f"{socket.gethostname()}-{os.getpid()}", options.node_name or socket.gethostname().lower()
    try:
        found = _places(
            options.host_root,
            options.kubelet_dir,
            options.device_plugins_dir,
            options.kubelet_config,
            options.podresources_socket,
        )
        places = structs.replace(
            found,
            notification=triggers.notification(options.notify_file),
            reference=snapshot.reference(options.reference_container),
        )
        manner = Manner(
            instance=instance,
            mode=options.mode.value,
            left_out=_left_out(options.exclude, node, options.mode),
            version=options.api_version.value,
            period=options.period,
            untaint=options.remove_startup_taint,
            fingerprint=not options.no_fingerprint,
            paused=options.no_publish,
        )
        address = (options.bind_address, options.port) if options.port else None
        enforcement = _enforcement(options) if options.direct_mode else None
        login = access.default(options.kubeconfig)
        kubelet = _kubelet(options, places, node, login) if options.configz else None
        setup = Setup(
            node=node,
            manner=manner,
            places=places,
            configz=kubelet,
            address=address,
            enforcement=enforcement,
        )
        with clock.event_loop_runner() as runner:
            runner.run(_run(setup, login))
    except OSError as problem:
        output.fail(f"{options.bind_address}:{options.port} cannot be served: {problem.strerror or problem}")


def _enforcement(options: AgentOptions) -> Enforcement:
    from numalign.agent.deviceplugin import config
    from numalign.agent.enforce.devices import Devices
    from numalign.agent.enforce.enforcer import Enforcement
    from numalign.cli import fileio

    if options.mode is not ReportForm.OWN:
        output.fail("--direct-mode needs --mode own: other publishers' reports have no words for it")
    devices = None
    if options.direct_devices or options.find_devices:
        document = fileio.only(options.direct_devices) if options.direct_devices else None
        offers = config.read(document.value, document.place) if document is not None else {}
        devices = Devices(offers, options.host_root, finds=options.find_devices)
    return Enforcement(
        socket=options.host_root / options.nri_socket.lstrip("/"),
        cri=options.host_root / options.cri_socket.lstrip("/") if options.cri_socket else None,
        host=options.host_root,
        patience=options.direct_wait,
        devices=devices,
        verified=not options.trust_runtime,
    )


def _kubelet(options: AgentOptions, places: Places, node: str, login: Access) -> Access:
    from numalign.agent.sources import kubeletconfig

    named = options.kubelet_certificate_authority
    authority = Path(named) if named else places.kubelet_root / kubeletconfig.CERTIFICATE
    return kubeletconfig.kubelet_access(login, options.kubelet_address, node, authority)


async def _run(setup: Setup, access: Access) -> None:
    from numalign.agent import main
    from numalign.kube.client import Client
    from numalign.process import log, tasks

    about = {
        "version": __version__,
        "server": f"{'https' if access.server.secure else 'http'}://{access.server.authority}",
        "node": setup.node,
        "mode": setup.manner.mode,
        "period": setup.manner.period,
        "pages": "none" if setup.address is None else f"http://{setup.address[0]}:{setup.address[1]}",
    }
    logging.getLogger(__name__).info("Starting numalign agent", extra=log.about(**about))
    async with Client(access, main.LIMITS) as client:
        await tasks.until_signalled(main.run(setup, client))


@app.command("once", epilog="Example: numalign agent once -o yaml")
def once(
    node_name: Node = "",
    mode: ModeName = ReportForm.OWN,
    api_version: VersionName = ReportVersion.V1ALPHA2,
    host_root: Host = Path("/"),
    kubelet_dir: Root = "/var/lib/kubelet",
    device_plugins_dir: DevicePlugins = DEVICE_PLUGINS,
    kubelet_config: Config = "",
    podresources_socket: Socket = "",
    exclude: Exclude = "",
    fmt: Output = Format.YAML,
) -> None:
    """Print the object that the agent would publish now. Needs no API server and no kubelet.

    Exit code: 0, or 2 if nothing is known of this machine."""
    from numalign.agent.publish import forms

    node = node_name or socket.gethostname().lower()
    left_out = _left_out(exclude, node, mode)
    look = _look(_places(host_root, kubelet_dir, device_plugins_dir, kubelet_config, podresources_socket))
    for each in (*look.readings.problems, *look.contradictions):
        output.warn(each)
    if withheld := (*look.unknown, *filter(None, [look.doubt])):
        output.warn(f"an agent would not publish this: {'; '.join(withheld)}")
    if look.inventory is None:
        output.fail("; ".join(look.unknown))
    report = look.inventory.report(node, mode.value, left_out)
    written = forms.document(report, mode.value, api_version.value)
    output.show(output.structured(written, Format.YAML if fmt is Format.TABLE else fmt))


@app.command("show", epilog="Example: numalign agent show")
def show(
    host_root: Host = Path("/"),
    kubelet_dir: Root = "/var/lib/kubelet",
    device_plugins_dir: DevicePlugins = DEVICE_PLUGINS,
    kubelet_config: Config = "",
    podresources_socket: Socket = "",
    fmt: Output = Format.TABLE,
) -> None:
    """Draw this machine: zones, CPUs, memory, distances, caches, and devices where a kubelet reports them."""
    from numalign.cli.results import machine

    look = _look(_places(host_root, kubelet_dir, device_plugins_dir, kubelet_config, podresources_socket))
    if look.readings.machine is None:
        output.fail("; ".join((*look.unknown, *look.readings.hardware_problems)))
    given = machine.machine_output(look, host_root)
    output.show(machine.drawn(given) if fmt is Format.TABLE else output.structured(given, fmt))


@app.command("gc", epilog="Example: numalign agent gc --once --dry-run")
def gc(
    kubeconfig: Kubeconfig = "",
    once: Annotated[bool, typer.Option("--once", help="Sweep once and exit.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Sweep once, and only print what would be deleted.")
    ] = False,
    interval: Interval = 600.0,
    grace: Grace = 300.0,
    bind_address: BindAddress = "127.0.0.1",
    port: Port = 0,
    verbosity: Verbosity = 2,
    log_format: LogFormat = output.LogForm.TEXT,
) -> None:
    """Delete the reports of nodes that are gone: at once where a Node is deleted, else by periodic sweeps.

    Exit code: 0, 1 if something could not be deleted, 2 if the cluster cannot be asked."""
    from numalign.agent.publish import gc
    from numalign.kube import clock
    from numalign.kube.access import access
    from numalign.kube.client import Client
    from numalign.kube.errors import KubeError
    from numalign.process import log, serve, tasks

    log.start("json" if log_format is output.LogForm.JSON else "text", verbosity)

    async def swept() -> bool:
        async with Client(access.default(kubeconfig)) as client:
            if once or dry_run:
                return _show_sweep(await gc.sweep(client, grace, dry_run=dry_run), is_only=True)
            counts = gc.Counts()

            def noted(swept: Swept) -> None:
                counts.note(swept)
                _show_sweep(swept)

            async with contextlib.AsyncExitStack() as stack:
                if port:
                    pages = serve.Pages(counts.pages())
                    await stack.enter_async_context(serve.serving(pages, (bind_address, port)))
                await tasks.until_signalled(gc.run(client, interval, grace, noted))
            return True

    try:
        with clock.event_loop_runner() as runner:
            well = runner.run(swept())
    except KubeError as problem:
        output.fail(str(problem))
    except OSError as problem:
        output.fail(f"{bind_address}:{port} cannot be served: {problem.strerror or problem}")
    if not well:
        raise typer.Exit(1)


def _show_sweep(swept: Swept, *, is_only: bool = False) -> bool:
    """`is_only`: no other sweep follows, so that nothing to delete is a result, too."""
    if is_only and not swept.stale and not swept.problems:
        output.show("nothing to delete: every report has its Node, or is too young to tell")
    for name in swept.stale:
        output.show(f"{name}: {'deleted' if name in swept.deleted else 'its node is gone'}")
    for each in swept.problems:
        output.warn(each)
    return not swept.problems


def _look(places: Places) -> Snapshot:
    from numalign.agent import main

    async def looked() -> Snapshot:
        async with main.snapshot_reader(places) as (looker, _):
            return await looker.look()

    return asyncio.run(looked())


def _places(host: Path, kubelet: str, device_plugins: str, config: str, podresources_socket: str) -> Places:
    from numalign.agent.main import Places
    from numalign.agent.sources import podresources

    given = podresources_socket
    asked = Path(given) if given.startswith("/") else podresources.endpoint(given) if given else None
    return Places(host=host, kubelet=kubelet, device_plugins=device_plugins, config=config, podresources=asked)


def _left_out(file: str, node: str, mode: str) -> Exclusions:
    """The exclusions of the file. Mode `own` has none: its readers take the report for the whole node."""
    from numalign.agent.inventory import exclusions

    if file and mode == "own":
        output.fail("--exclude is for the modes rte and nfd; a report in our own form is always complete")
    return exclusions.read(Path(file), node) if file else exclusions.NONE
