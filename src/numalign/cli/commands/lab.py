"""`numalign lab`: builds of the real components, and clusters of real kubelets."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from numalign.api.errors import BadObject
from numalign.cli import output
from numalign.cli.lab import campaign, up
from numalign.lab import build as binaries
from numalign.lab import build as catalogue
from numalign.lab.build import Binary
from numalign.lab.errors import LabError

app = typer.Typer(help="Real Kubernetes components for tests and comparisons.", no_args_is_help=True)

app.command("up", epilog="Example: numalign lab up --nodes 3 --machine 2x16 --stock-scheduler")(up.up)
app.command("down", epilog="Example: numalign lab down")(up.down)
app.command("status", epilog="Example: numalign lab status")(up.status)
app.command("logs", epilog="Example: numalign lab logs node-0/kubelet -f")(up.logs)
app.command(
    "shell",
    epilog="Example: numalign lab shell node-0 lscpu",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)(up.shell)
app.command("campaign", epilog="Example: numalign lab campaign --minutes 5 --seed 1")(campaign.campaign)


@app.callback()
def lab() -> None:
    """Real Kubernetes components for tests and comparisons."""


@app.command(epilog="Example: numalign lab build oracle-kubelet-1.37")
def build(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="binaries to build; default: all")
    ] = None,
    fmt: Annotated[output.Format, typer.Option("-o", "--output", help="output format")] = output.Format.TABLE,
) -> None:
    """Build missing binaries into the cache, and print where all are."""
    try:
        wanted = catalogue.chosen(names or [])
        progress = Progress(wanted)
        built = list(binaries.build(wanted, progress.announce))
    except (LabError, BadObject) as problem:
        output.fail(str(problem))
    if fmt is not output.Format.TABLE:
        print(output.structured({each.binary.name: str(each.path) for each in built}, fmt))
        return
    for each in built:
        print(f"{each.binary.name:<24} {'built' if each.fresh else 'ready':<6} {each.path}")


class Progress:
    """Prints on stderr what is being built and the estimated time left on two cores."""

    def __init__(self, wanted: tuple[Binary, ...]) -> None:
        self.left = list(wanted)
        self.started = time.monotonic()

    def announce(self, binary: Binary) -> None:
        self.left = self.left[self.left.index(binary) :]
        minutes = sum(each.minutes for each in self.left)
        elapsed = (time.monotonic() - self.started) / 60
        print(
            f"building {binary.name}; {elapsed:.0f} min so far, up to {minutes:.0f} min left if nothing is cached",
            file=sys.stderr,
            flush=True,
        )
