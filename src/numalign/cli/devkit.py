"""Adds the commands of the development kit (`numalign oracle`, `numalign lab`), which is a distribution of its own.

`main` calls it. Where numalign-devkit is not installed, both commands say what to install and exit with code 2."""

from __future__ import annotations

from importlib.util import find_spec

import typer

from numalign.cli import output

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
    from numalign.cli.commands import lab, oracle

    app.add_typer(oracle.app, name="oracle")
    app.add_typer(lab.app, name="lab")


def _add_missing(app: typer.Typer, name: str, says: str) -> None:
    message = MISSING.format(name=name)

    @app.command(name, help=f"{says} Not installed: needs numalign-devkit.", context_settings=UNPARSED)
    def missing() -> None:
        output.fail(message)
