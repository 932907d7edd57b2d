"""`numalign cluster`: an embedded cluster for kubectl, up in a second and gone without a trace."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.api.errors import BadObject
from numalign.cli import output

if TYPE_CHECKING:
    from numalign.simulator.hosting import HostedCluster
    from numalign.simulator.registry import RunningCluster

app = typer.Typer(help="An embedded cluster for kubectl, on made-up machines.", no_args_is_help=True)

PATIENCE = 60.0
"""Seconds until a cluster that is not up yet is given up."""
LOOK = 0.05
LAST_WORDS = 2000

Name = Annotated[str, typer.Argument(metavar="[NAME]", help="which cluster")]
OutputFormat = Annotated[output.Format, typer.Option("-o", "--output", help="how to print the result")]


@app.callback()
def cluster() -> None:
    """An embedded cluster for kubectl, on made-up machines."""


@app.command(epilog="Example: numalign cluster up --nodes 3 --machine gpu-8 --policy single-numa-node")
def up(
    name: Name = "numalign",
    nodes: Annotated[int, typer.Option(min=1, max=50_000, help="how many nodes")] = 3,
    machine: Annotated[str, typer.Option(help="a preset's name, or a machine file")] = "2x16",
    policy: Annotated[str, typer.Option(help="topology manager policy")] = "single-numa-node",
    scope: Annotated[str, typer.Option(help="topology manager scope")] = "container",
    kubelet_config: Annotated[
        Path | None, typer.Option(help="a KubeletConfiguration; without one CPUs and memory are managed statically")
    ] = None,
    reports: Annotated[str, typer.Option(help="who reports zones: agent, rte, nfd or none")] = "agent",
    scenario: Annotated[str, typer.Option(help="play this scenario, on its own nodes: a name or a file")] = "",
    scheduler: Annotated[str, typer.Option(help="scheduler that the scenario's pods name")] = "default-scheduler",
    blind_scheduler: Annotated[
        bool, typer.Option("--blind-scheduler/--no-blind-scheduler", help="serve default-scheduler")
    ] = True,
    with_scheduler: Annotated[bool, typer.Option("--with-scheduler", help="serve numalign, too")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free")] = 0,
    tls: Annotated[bool, typer.Option("--tls", help="speak TLS, and ask for the token of the kubeconfig")] = False,
    seed: Annotated[int, typer.Option(help="for everything that is left to chance")] = 1,
    foreground: Annotated[bool, typer.Option("--foreground", help="stay here until interrupted")] = False,
    fmt: OutputFormat = output.Format.TABLE,
) -> None:
    """Start a cluster, and say which KUBECONFIG leads to it."""
    from numalign.cli.results import clusteroptions
    from numalign.simulator import registry

    try:
        asked = clusteroptions.ClusterOptions(nodes, machine, policy, scope, kubelet_config, reports, scenario)
        served = {
            "scheduler": scheduler,
            "default_scheduler": blind_scheduler,
            "zone_aware_scheduler": with_scheduler,
        }
        hosted = clusteroptions.hosted(asked, name=name, port=port, secure=tls, seed=seed, **served)
        if registry.running(name) is not None:
            raise registry.AlreadyRuns("Cluster", name, "", f"already runs; `numalign cluster down {name}` ends it")
        if foreground:
            return _stay(hosted)
        found = _started(name)
    except BadObject as problem:
        output.fail(str(problem))
    output.show(output.structured(found, fmt) if fmt is not output.Format.TABLE else _lines(found))


@app.command(epilog="Example: numalign cluster down")
def down(name: Name = "numalign") -> None:
    """End a cluster; nothing of it stays."""
    from numalign.simulator import registry

    try:
        ended = registry.end(name)
    except BadObject as problem:
        output.fail(str(problem))
    if not ended:
        output.fail(f"no cluster {name} runs; `numalign cluster status` lists those that do", code=1)
    output.show(f"{name} is down")


@app.command(epilog="Example: numalign cluster status -o json")
def status(fmt: OutputFormat = output.Format.TABLE) -> None:
    """List the clusters that run on this machine."""
    from numalign.simulator import registry

    found = registry.every()
    if fmt is not output.Format.TABLE:
        return output.show(output.structured(found, fmt))
    output.show("\n\n".join(map(_lines, found)) or "no cluster runs; `numalign cluster up` starts one")


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
        # The parts of a cluster end together, and so do their failures.
        problems += group.exceptions
    if problems:
        output.fail(f"port {hosted.port} cannot be served: {problems[0]}", code=1)


def _started(name: str) -> RunningCluster:
    """The same command again, in a process that stays; what it says goes into a file of its folder."""
    from numalign.simulator import registry

    place = registry.folder(name)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = place / "log"
    with open(log, "wb") as said:
        command = [sys.executable, "-m", "numalign.cli", *sys.argv[1:], "--foreground"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True, cwd="/"
        )
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        found = registry.running(name)
        if found is not None and found.pid == process.pid:
            return found
        time.sleep(LOOK)
    process.kill()
    words = log.read_text(errors="replace")[-LAST_WORDS:].strip() or "it said nothing"
    raise BadObject("Cluster", name, "", f"did not come up: {words}")
