"""The `numalign` command: its own options, and a table of the commands with the modules that have them.

A module is imported when its command is called, completed or listed in help: kubectl users expect an answer as fast as
kubectl's. `numalign lab` and `numalign oracle` belong to the distribution numalign-devkit; where it is not installed,
both commands say what to install and exit with code 2. A command lets BadObject pass: it is printed here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
import typer.main
from typer.core import TyperGroup

from numalign import __version__
from numalign.api.errors import BadObject
from numalign.cli import helptext, output

COMMANDS: Final = {
    "why": "commands.explain:why",
    "state": "commands.scheduler:shortened",
    "cluster": "commands.cluster:app",
    "scheduler": "commands.scheduler:app",
    "extender": "commands.extender:app",
    "record": "commands.record:app",
    "explain": "commands.explain:app",
    "topology": "commands.topology:app",
    "nodes": "commands.topology:app",
    "capacity": "commands.capacity:app",
    "plan": "commands.plan:app",
    "dashboard": "commands.dashboard:app",
    "doctor": "commands.install.doctor:app",
    "scenario": "commands.scenario:app",
    "kubelet": "commands.kubelet:app",
    "agent": "commands.agent:app",
    "deploy": "commands.install.tree:app",
    "operator": "commands.install.operator:app",
    "device-plugin": "commands.deviceplugin:app",
    "demo": "commands.demo:app",
    "version": "commands.version:app",
    "completion": "commands.version:app",
    "oracle": "devkit.oracle:app",
    "lab": "devkit.lab:app",
}
"""Where each command is, below `numalign.cli`, in the order of help."""
KIT: Final = {
    "oracle": "Compare numalign's answers with those of the real components.",
    "lab": "Run real Kubernetes components for tests and comparisons.",
}
"""With the help of a command whose code is not installed."""
MISSING: Final = "`numalign {name}` is part of the development kit: install numalign-devkit"
DEFAULT_COMPLETION: Final = ":0"
"""Ends the answer to kubectl, as its own completions end: where there is no word, the shell offers files."""
# The line after the command is the kit's to parse, options included.
UNPARSED: Final = {"ignore_unknown_options": True, "allow_extra_args": True}


@cache
def loaded(name: str) -> Any:
    """The click command of this name; KeyError if there is none."""
    module, attribute = COMMANDS[name].split(":")
    app = missing(name) if name in KIT and not has_kit() else getattr(imported(module), attribute)
    # A group with one member gives the member what it would have below `numalign`.
    around = typer.Typer(rich_markup_mode=None, add_completion=False)
    around.add_typer(app, name=name if app.registered_callback else None)
    return typer.main.get_group(around).commands[name]


def imported(module: str) -> Any:
    return importlib.import_module(f"numalign.cli.{module}")


def has_kit() -> bool:
    return find_spec("numalign.oracle") is not None and find_spec("numalign.lab") is not None


def missing(name: str) -> typer.Typer:
    """A command that says what to install."""
    app, message = typer.Typer(), MISSING.format(name=name)

    @app.command(name, help=f"{KIT[name]} Not installed: needs numalign-devkit.", context_settings=UNPARSED)
    def fail() -> None:
        output.fail(message)

    return app


class Table(Mapping[str, Any]):
    """The commands by name; one that is asked for is loaded."""

    def __getitem__(self, name: str) -> Any:
        return loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """Prints invalid input of any command as an error, and exits with code 2."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Table()

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BadObject as problem:
            output.fail(str(problem))


helptext.install()
app = typer.Typer(
    name="numalign",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: numalign demo",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"numalign {__version__}")
        raise typer.Exit


@app.callback()
def numalign(
    print_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """NUMA-aware scheduling for Kubernetes, on an exact model of the kubelet's resource managers."""


def plugin() -> None:
    """The same commands as `kubectl numalign`: kubectl runs a program of this name."""
    app(prog_name="kubectl numalign")


def complete() -> None:
    """What may come next after `kubectl numalign WORD...`: kubectl asks the program kubectl_complete-numalign."""
    words = sys.argv[1:] or [""]
    helptext.complete(["numalign", *words])
    try:
        app(prog_name="numalign")
    except SystemExit:
        print(DEFAULT_COMPLETION)
