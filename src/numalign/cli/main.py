"""The `numalign` command: registers the command groups and the options of the command itself.

Every group is a module with an `app`. `numalign lab` and `numalign oracle` belong to the distribution numalign-devkit;
where it is not installed, both commands say what to install and exit with code 2. A command lets BadObject pass: it is
printed here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from numalign import __version__
from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.commands import (
    agent,
    cluster,
    demo,
    deploy,
    deploycluster,
    deployhost,
    deviceplugin,
    doctor,
    explain,
    extender,
    kubelet,
    operator,
    scenario,
    scheduler,
    topology,
)

COMMANDS = {
    "oracle": "Compare numalign's answers with those of the real components.",
    "lab": "Run real Kubernetes components for tests and comparisons.",
}
"""With the help of a command whose code is not installed."""
MISSING = "`numalign {name}` is part of the development kit: install numalign-devkit"
# The line after the command is the kit's to parse, options included.
UNPARSED = {"ignore_unknown_options": True, "allow_extra_args": True}


def add_commands(app: typer.Typer) -> None:
    """Add the kit's command groups to `app`, or commands of the same names that ask for the kit."""
    if find_spec("numalign.oracle") is None or find_spec("numalign.lab") is None:
        for name, says in COMMANDS.items():
            _add_missing(app, name, says)
        return
    from numalign.cli.devkit import lab, oracle

    app.add_typer(oracle.app, name="oracle")
    app.add_typer(lab.app, name="lab")


def _add_missing(app: typer.Typer, name: str, says: str) -> None:
    message = MISSING.format(name=name)

    @app.command(name, help=f"{says} Not installed: needs numalign-devkit.", context_settings=UNPARSED)
    def missing() -> None:
        output.fail(message)


class Commands(TyperGroup):
    """Prints invalid input of any command as an error, and exits with code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BadObject as problem:
            output.fail(str(problem))


app = typer.Typer(
    name="numalign",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: numalign demo",
)
app.add_typer(cluster.app, name="cluster")
app.add_typer(scheduler.app, name="scheduler")
app.add_typer(extender.app, name="extender")
app.add_typer(explain.app, name="explain")
app.add_typer(topology.app)
app.add_typer(doctor.app)
app.add_typer(scenario.app, name="scenario")
app.add_typer(kubelet.app, name="kubelet")
app.add_typer(agent.app, name="agent")
deploy.app.add_typer(deploycluster.app)
deploy.app.add_typer(deployhost.app)
deploy.app.add_typer(deployhost.static_pod, name="static-pod")
deploy.app.command("validate", epilog="Example: numalign deploy validate --strict")(doctor.doctor)
app.add_typer(deploy.app, name="deploy")
app.add_typer(operator.app, name="operator")
app.add_typer(deviceplugin.app, name="device-plugin")
app.add_typer(demo.app)
add_commands(app)


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


def plugin() -> None:
    """The same commands as `kubectl numalign`: kubectl runs a program of this name."""
    app(prog_name="kubectl numalign")
