"""`numalign cluster`: starts and stops an embedded cluster for kubectl."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.cli import dashboards, output
from numalign.cli.display import clusterlines
from numalign.cli.options import Machine, Output, Policy, Scope
from numalign.process import interpreter

if TYPE_CHECKING:
    from numalign.simulator.hosting import HostedCluster
    from numalign.simulator.registry import RunningCluster

app = typer.Typer(help="An embedded cluster for kubectl, on made-up machines.", no_args_is_help=True)

PATIENCE = 120.0
"""Seconds to wait for a cluster to come up."""
SLOW = 2.0
"""Seconds after which the command says what it waits for."""
LOOK = 0.05
LAST_WORDS = 2000
INTERRUPTED = 130
OURS = "numalign"
NODE_OPTIONS = ("nodes", "machine", "policy", "scope", "kubelet_config", "direct_mode", "reports")
MANAGED = ("policy", "scope", "kubelet_config", "reports")
"""Parameters about kubelets that decide by themselves, and about other publishers."""
"""Parameters that describe nodes, which a scenario brings itself."""


class ReportPublisher(StrEnum):
    """What `--reports` accepts; a test holds it against the publishers of simulated nodes."""

    AGENT = "agent"
    RTE = "rte"
    NFD = "nfd"
    NONE = "none"


Name = Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the cluster.")]


@app.callback()
def cluster() -> None:
    """An embedded cluster for kubectl, on made-up machines."""


@app.command(epilog="Example: numalign cluster up --nodes 3 --machine gpu-8 --with-scheduler")
def up(
    ctx: typer.Context,
    name: Name = "numalign",
    nodes: Annotated[int, typer.Option(metavar="N", min=1, max=50_000, help="Number of nodes.")] = 3,
    machine: Machine = "2x16",
    policy: Annotated[Policy, typer.Option(help="Topology Manager policy.")] = Policy.SINGLE,
    scope: Annotated[Scope, typer.Option(help="Topology Manager scope.")] = Scope.CONTAINER,
    kubelet_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A KubeletConfiguration. Default: static CPU and memory managers."),
    ] = None,
    direct_mode: Annotated[
        bool,
        typer.Option("--direct-mode", help="Nodes on which the scheduler decides, with kubelets without managers."),
    ] = False,
    reports: Annotated[ReportPublisher, typer.Option(help="Publisher of the reports.")] = ReportPublisher.AGENT,
    scenario: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Play this scenario on its own nodes, in real time.")
    ] = "",
    scheduler: Annotated[
        str, typer.Option(metavar="NAME", help="Scheduler that the scenario's pods name.")
    ] = "default-scheduler",
    fast_forward: Annotated[
        bool,
        typer.Option("--fast-forward", help="Play the scenario to its end in virtual time, then serve the cluster."),
    ] = False,
    blind_scheduler: Annotated[
        bool,
        typer.Option("--blind-scheduler/--no-blind-scheduler", help="Run default-scheduler, which ignores topology."),
    ] = True,
    with_scheduler: Annotated[bool, typer.Option("--with-scheduler", help="Also run the numalign scheduler.")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Port of the API server; 0: any that is free.")
    ] = 0,
    tls: Annotated[
        bool | None,
        typer.Option(
            "--tls/--no-tls",
            help="Serve TLS, and require the token of the kubeconfig. Default: TLS if numalign[tls] is installed.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of all random choices. Default: the scenario's, or 1.")
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in the foreground until interrupted.")] = False,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Start a cluster and print its KUBECONFIG.

    The command returns when all nodes have published their topology reports. Only `export KUBECONFIG=...` is printed on
    stdout, for eval "$(numalign cluster up)". Exit code: 0, or 2 if the cluster cannot be started, 130 after Ctrl-C."""
    from numalign.cli.results import clusteroptions
    from numalign.simulator import registry

    _refuse_ignored(ctx, name, scenario, fast_forward, direct_mode=direct_mode)
    asked = clusteroptions.ClusterOptions(nodes, machine, policy, scope, kubelet_config, reports, scenario, direct_mode)
    served = {
        "scheduler": scheduler,
        "default_scheduler": blind_scheduler,
        # The scheduler that plays to the end of a scenario goes on in the cluster.
        "zone_aware_scheduler": with_scheduler or (fast_forward and scheduler == OURS),
        "fast_forward": fast_forward,
    }
    hosted = clusteroptions.hosted(asked, name=name, port=port, secure=_is_secure(tls), seed=seed, **served)
    if registry.running(name) is not None:
        raise registry.AlreadyRuns("Cluster", name, "", f"already runs; `numalign cluster down {name}` ends it")
    if foreground:
        return _stay(hosted)
    found = _started(name, hosted.words)
    if fmt is not output.Format.TABLE:
        return output.show(output.structured(found, fmt))
    output.say(clusterlines.description(found))
    if scenario and scheduler not in [each.name for each in found.schedulers]:
        output.warn(f"the scenario's pods name {scheduler}, which does not run in this cluster: they wait for it")
    output.say(clusterlines.next_steps(found))
    output.show(clusterlines.export(found))


@app.command(epilog="Example: numalign cluster down")
def down(name: Name = "numalign") -> None:
    """Stop a cluster and remove its files."""
    from numalign.simulator import registry

    if not registry.end(name):
        output.fail(f"no cluster {name} runs; `numalign cluster status` lists those that do", code=1)
    registry.remove(name)
    output.show(f"{name} is down")


@app.command(epilog="Example: numalign cluster status -o json")
def status(fmt: Output = output.Format.TABLE) -> None:
    """List the clusters that run on this machine."""
    from numalign.simulator import registry

    found = registry.every()
    if fmt is not output.Format.TABLE:
        return output.show(output.structured(found, fmt))
    lines = (f"{clusterlines.description(each)}\n{clusterlines.export(each)}" for each in found)
    output.show("\n\n".join(lines) or "no cluster runs; `numalign cluster up` starts one")


def _is_secure(tls: bool | None) -> bool:
    """Kubernetes clients send a token over TLS only, so that both come together."""
    from numalign.process import certificates

    if tls is not None or certificates.are_available():
        return tls is not False
    output.warn("every user of this machine can use the cluster; pip install 'numalign[tls]' for TLS and a token")
    return False


def _refuse_ignored(ctx: typer.Context, name: str, scenario: str, fast_forward: bool, *, direct_mode: bool) -> None:
    """An option without effect is a mistake of the caller."""
    ignored: tuple[str, ...] = ("scheduler", "fast_forward")
    why = "no effect without --scenario"
    if scenario:
        ignored, why = NODE_OPTIONS, "no effect with --scenario, which has its own nodes"
    if fast_forward and scenario:
        ignored, why = (*ignored, "blind_scheduler"), f"{why}; --fast-forward always runs default-scheduler"
    if direct_mode and not scenario:
        ignored, why = (*ignored, *MANAGED), f"no effect with --direct-mode, or {why}"
    given = [f"--{each.replace('_', '-')}" for each in ignored if _is_given(ctx, each)]
    if given:
        raise BadObject("Cluster", name, ", ".join(given), f"{why}; remove {'it' if len(given) == 1 else 'them'}")


def _is_given(ctx: typer.Context, parameter: str) -> bool:
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name not in ("DEFAULT", "DEFAULT_MAP")


def _stay(hosted: HostedCluster) -> None:
    from numalign.process import log
    from numalign.simulator import hosting

    log.start()
    if dashboards.is_installed():
        hosted = structs.replace(hosted, mounted={dashboards.PATH: dashboards.of_scheduler})
    problems: list[OSError] = []
    try:
        hosting.host(hosted, lambda found: output.show(clusterlines.export(found)))
    except* OSError as group:
        # The parts of a cluster end together, so their errors come as a group of groups.
        problems += _leaves(group)
    if problems:
        why = os.strerror(problems[0].errno) if problems[0].errno else str(problems[0])
        output.fail(f"port {hosted.port} cannot be served: {why}", code=1)


def _leaves(group: BaseExceptionGroup[OSError]) -> list[OSError]:
    found: list[OSError] = []
    for each in group.exceptions:
        found += _leaves(each) if isinstance(each, BaseExceptionGroup) else [each]
    return found


def _started(name: str, words: str) -> RunningCluster:
    """Runs the same command in a background process, which logs into a file of the cluster's folder."""
    from numalign.simulator import registry

    place = registry.prepared(name)
    log = place / "log"
    with open(log, "wb") as log_file:
        command = [*interpreter.NUMALIGN, *sys.argv[1:], "--foreground"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file, start_new_session=True
        )
    begun = time.monotonic()
    is_slow = False
    try:
        while time.monotonic() < begun + PATIENCE and process.poll() is None:
            found = registry.running(name)
            if found is not None and found.pid == process.pid:
                return found
            if time.monotonic() > begun + SLOW and not is_slow:
                is_slow = True
                output.say(f"starting {name}: {words}; waiting for the topology report of every node")
            time.sleep(LOOK)
    except KeyboardInterrupt:
        _ended(process)
        registry.remove(name)
        output.fail(f"interrupted; cluster {name} was not started", code=INTERRUPTED)
    _ended(process)
    said = log.read_text(errors="replace")[-LAST_WORDS:].strip().removeprefix("numalign: ") or "it printed nothing"
    registry.remove(name)
    raise BadObject("Cluster", name, "", f"did not come up: {said}")


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
