"""`numalign scheduler`: the scheduler's side of things.

Parses, hands over to the rooms below, prints. What they need is imported by the commands, so that help stays quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output
from numalign.cli.output import Format
from numalign.cli.scheduler import look, run

if TYPE_CHECKING:
    from numalign.api.schedulerconfig.configuration import Configuration

REFUSED = 1

app = typer.Typer(no_args_is_help=True)

app.command("run", epilog="Example: numalign scheduler run --config scheduler.yaml")(run.run)
app.command("state", epilog="Example: numalign scheduler state --pod default/web")(look.state)
app.command("dump", epilog="Example: numalign scheduler dump -f now.json.gz")(look.dump)
app.command("repeat", epilog="Example: numalign scheduler repeat now.json.gz --pod default/web")(look.repeat)

File = Annotated[str, typer.Argument(metavar="FILE", help="A KubeSchedulerConfiguration; - is stdin.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the answer.")]


@app.callback()
def scheduler() -> None:
    """Run the scheduler, and look at what it does."""


@app.command("check-config", epilog="Example: numalign scheduler check-config scheduler.yaml")
def check_config(file: File, fmt: Output = Format.TABLE) -> None:
    """Tell what a scheduler with this configuration would do, or what is wrong with it.

    Exit code: 0 if it can be used, 1 if it cannot, 2 if the file cannot be read."""
    from numalign.api import errors
    from numalign.cli.scheduler import checkconfig

    try:
        config = _read(file)
    except errors.BadObject as problem:
        # A file that is not there has no field; what is wrong in one has a path, or a line.
        output.fail(str(problem), REFUSED if problem.field else 2)
    for warning in config.warnings:
        output.warn(warning)
    output.show(checkconfig.drawn(config) if fmt is Format.TABLE else output.structured(checkconfig.told(config), fmt))


def _read(file: str) -> Configuration:
    from numalign.cli import yamlfiles
    from numalign.scheduler import settings

    document = yamlfiles.only(file)
    return settings.read(document.value, document.place)
