"""`numalign scenario`: plays scenarios on an embedded cluster in virtual time and judges the result."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from numalign.cli import fileio, output
from numalign.cli.options import Output

app = typer.Typer(help="Play scenarios on an embedded cluster, in virtual time.", no_args_is_help=True)

Which = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A scenario of the catalogue, or a file.")]


class Player(StrEnum):
    """The schedulers that can play a scenario; a test holds them against those of the simulator."""

    DEFAULT = "default-scheduler"
    OURS = "numalign"


SAY_EVERY = 2.0
"""Seconds between two lines of progress."""


@app.callback()
def scenario() -> None:
    """Play scenarios on an embedded cluster, in virtual time."""


@app.command("list", epilog="Example: numalign scenario list")
def list_(fmt: Output = output.Format.TABLE) -> None:
    """List the scenarios that ship with numalign."""
    from numalign.simulator.scenarios import catalogue

    titles = {name: catalogue.scenario(name).title for name in catalogue.names()}
    if fmt is not output.Format.TABLE:
        return output.show(output.structured([{"name": name, "title": titles[name]} for name in titles], fmt))
    width = max(map(len, titles))
    output.show("\n".join(f"{name:<{width}}  {title}" for name, title in titles.items()))


@app.command(epilog="Example: numalign scenario show gpu-mix")
def show(name: Annotated[str, typer.Argument(help="A scenario of the catalogue.")]) -> None:
    """Print the file of a scenario, to read it or to write your own."""
    from numalign.simulator.scenarios import catalogue

    output.show(catalogue.text(name).rstrip())


@app.command(epilog="Example: numalign scenario run rejection-storm --scheduler numalign")
def run(
    which: Which,
    scheduler: Annotated[Player, typer.Option(help="Scheduler that places the pods.")] = Player.DEFAULT,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of another run of the same scenario.")] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the history to this file, one JSON line per event.")
    ] = None,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Play a scenario and judge it.

    Exit code: 0 if all expectations hold; 1 if one does not, if none is set for the scheduler, or if the API server
    refuses pods of the scenario; 2 if the scenario cannot be read."""
    from numalign.cli.results import clusteroptions, scenarioresult
    from numalign.simulator.scenarios import history, play

    story = clusteroptions.story(which)
    fileio.require_file(record)
    progress = ScenarioProgress(story.lasts)
    played = play.play(story, scheduler, seed, progress.at)
    fileio.write(record, history.encode(played.lines))
    result = scenarioresult.of(story, scheduler, played)
    is_table = fmt is output.Format.TABLE
    output.show(scenarioresult.text(story, result) if is_table else output.structured(result, fmt))
    raise typer.Exit(1 if result.violations else 0)


class ScenarioProgress:
    """Prints the progress of a long scenario on stderr."""

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._said = time.monotonic()

    def at(self, seconds: float) -> None:
        if time.monotonic() - self._said > SAY_EVERY:
            self._said = time.monotonic()
            print(f"{seconds:,.0f} of {self._lasts:,.0f} seconds played", file=sys.stderr, flush=True)
