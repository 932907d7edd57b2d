"""`numalign cluster`: starts and stops an embedded cluster for kubectl."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.options import Output
from numalign.process import interpreter

if TYPE_CHECKING:
    from numalign.simulator.hosting import HostedCluster
    from numalign.simulator.registry import RunningCluster

app = typer.Typer(help="An embedded cluster for kubectl, on made-up machines.", no_args_is_help=True)

PATIENCE = 60.0
"""Seconds to wait for a cluster to come up."""
LOOK = 0.05
LAST_WORDS = 2000

Name = Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the cluster.")]


@app.callback()
def cluster() -> None:
    """An embedded cluster for kubectl, on made-up machines."""


@app.command(epilog="Example: numalign cluster up --nodes 3 --machine gpu-8 --policy single-numa-node")
def up(
    name: Name = "numalign",
    nodes: Annotated[int, typer.Option(min=1, max=50_000, help="Number of nodes.")] = 3,
    machine: Annotated[str, typer.Option(help="Name of a preset, or a machine file.")] = "2x16",
    policy: Annotated[str, typer.Option(help="Topology Manager policy.")] = "single-numa-node",
    scope: Annotated[str, typer.Option(help="Topology Manager scope.")] = "container",
    kubelet_config: Annotated[
        Path | None, typer.Option(help="A KubeletConfiguration. Default: static CPU and memory managers.")
    ] = None,
    reports: Annotated[str, typer.Option(help="Publisher of the topology reports: agent, rte, nfd or none.")] = "agent",
    scenario: Annotated[str, typer.Option(help="Play this scenario (a name or a file) on its own nodes.")] = "",
    scheduler: Annotated[str, typer.Option(help="Scheduler that the scenario's pods name.")] = "default-scheduler",
    blind_scheduler: Annotated[
        bool,
        typer.Option("--blind-scheduler/--no-blind-scheduler", help="Run default-scheduler, which ignores topology."),
    ] = True,
    with_scheduler: Annotated[bool, typer.Option("--with-scheduler", help="Also run the numalign scheduler.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free")] = 0,
    tls: Annotated[
        bool | None,
        typer.Option(
            "--tls/--no-tls",
            help="Serve TLS, and require the token of the kubeconfig. Default: TLS if numalign[tls] is installed.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 1,
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in the foreground until interrupted.")] = False,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Start a cluster and print its KUBECONFIG."""
    from numalign.cli.results import clusteroptions
    from numalign.simulator import registry

    asked = clusteroptions.ClusterOptions(nodes, machine, policy, scope, kubelet_config, reports, scenario)
    served = {
        "scheduler": scheduler,
        "default_scheduler": blind_scheduler,
        "zone_aware_scheduler": with_scheduler,
    }
    hosted = clusteroptions.hosted(asked, name=name, port=port, secure=_is_secure(tls), seed=seed, **served)
    if registry.running(name) is not None:
        raise registry.AlreadyRuns("Cluster", name, "", f"already runs; `numalign cluster down {name}` ends it")
    if foreground:
        return _stay(hosted)
    found = _started(name)
    output.show(output.structured(found, fmt) if fmt is not output.Format.TABLE else _lines(found))


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
    output.show("\n\n".join(map(_lines, found)) or "no cluster runs; `numalign cluster up` starts one")


def _is_secure(tls: bool | None) -> bool:
    """Kubernetes clients send a token over TLS only, so that both come together."""
    from numalign.process import certificates

    if tls is not None or certificates.are_available():
        return tls is not False
    output.warn("every user of this machine can use the cluster; pip install 'numalign[tls]' for TLS and a token")
    return False


def _lines(found: RunningCluster) -> str:
    return f"{found.name}: {found.words}, at {found.url}\nexport KUBECONFIG={found.kubeconfig}"


def _stay(hosted: HostedCluster) -> None:
    import logging

    from numalign.simulator import hosting

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    problems: list[Exception] = []
    try:
        hosting.host(hosted)
    except* OSError as group:
        # The parts of a cluster end together, so their errors come as a group.
        problems += group.exceptions
    if problems:
        output.fail(f"port {hosted.port} cannot be served: {problems[0]}", code=1)


def _started(name: str) -> RunningCluster:
    """Runs the same command in a background process, which logs into a file of the cluster's folder."""
    from numalign.simulator import registry

    place = registry.prepared(name)
    log = place / "log"
    with open(log, "wb") as log_file:
        command = [*interpreter.NUMALIGN, *sys.argv[1:], "--foreground"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file, start_new_session=True, cwd="/"
        )
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        found = registry.running(name)
        if found is not None and found.pid == process.pid:
            return found
        time.sleep(LOOK)
    process.kill()
    words = log.read_text(errors="replace")[-LAST_WORDS:].strip() or "it printed nothing"
    raise BadObject("Cluster", name, "", f"did not come up: {words}")
