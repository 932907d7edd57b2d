"""The `numalign` command: its groups, and the options of no group in particular.

Every group is a module with an `app`; commands import what they need when they run, so that help and completion are
quick."""

from __future__ import annotations

from typing import Annotated

import typer

from numalign import __version__
from numalign.cli import devkit
from numalign.cli.commands import agent, cluster, demo, deviceplugin, explain, kubelet, scenario, scheduler, topology

app = typer.Typer(
    name="numalign",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: numalign demo",
)
app.add_typer(cluster.app, name="cluster")
app.add_typer(scheduler.app, name="scheduler")
app.add_typer(explain.app, name="explain")
app.add_typer(topology.app)
app.add_typer(scenario.app, name="scenario")
app.add_typer(kubelet.app, name="kubelet")
app.add_typer(agent.app, name="agent")
app.add_typer(deviceplugin.app, name="device-plugin")
app.add_typer(demo.app)
devkit.add_commands(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"numalign {__version__}")
        raise typer.Exit


@app.callback()
def numalign(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """NUMA-aware scheduling for Kubernetes, on an exact model of the kubelet's resource managers."""
