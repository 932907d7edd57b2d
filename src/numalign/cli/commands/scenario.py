"""`numalign scenario`: plays scenarios on an embedded cluster in virtual time and judges the result."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import fileio, output
from numalign.cli.options import Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numalign.simulator.scenarios.scenario import Scenario

app = typer.Typer(help="Play scenarios on an embedded cluster, in virtual time.", no_args_is_help=True)

Which = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A scenario of the catalogue, or a file.")]
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
        return output.show(output.structured(titles, fmt))
    width = max(map(len, titles))
    output.show("\n".join(f"{name:<{width}}  {title}" for name, title in titles.items()))


@app.command(epilog="Example: numalign scenario show gpu-mix")
def show(name: Annotated[str, typer.Argument(help="A scenario of the catalogue.")]) -> None:
    """Print the file of a scenario, to read it or to write your own."""
    from numalign.simulator.scenarios import catalogue

    output.show(catalogue.text(name).rstrip())


@app.command(epilog="Example: numalign scenario run rejection-storm")
def run(
    which: Which,
    scheduler: Annotated[str, typer.Option(help="Scheduler that places the pods.")] = "default-scheduler",
    seed: Annotated[int | None, typer.Option(help="Seed of another run of the same scenario.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the history to this file, one JSON line per event.")
    ] = None,
    fmt: Output = output.Format.TABLE,
) -> None:
    """Play a scenario and judge it. Exit code: 0 if all expectations hold, else 1."""
    from numalign.cli.results import clusteroptions
    from numalign.simulator.scenarios import history, judge, play

    story = clusteroptions.story(which)
    fileio.require_file(record)
    progress = ScenarioProgress(story.lasts)
    played = play.play(story, scheduler, seed, progress.at)
    fileio.write(record, history.encode(played.lines))
    for refused in played.refused:
        output.warn(refused)
    measures = judge.measures(played.lines)
    violations = [str(each) for each in judge.judge(story, scheduler, played.lines)]
    if fmt is output.Format.TABLE:
        output.show(_page(story, scheduler, measures, violations))
    else:
        result = {"scenario": story.name, "scheduler": scheduler, "measures": measures, "violations": violations}
        output.show(output.structured(result, fmt))
    raise typer.Exit(1 if violations else 0)


def _page(story: Scenario, scheduler: str, measures: Mapping[str, float], violations: list[str]) -> str:
    from numalign.simulator.scenarios import durations
    from numalign.simulator.scenarios.judge import MEASURES

    numbers = [f"{name:<16} {number:>10,.10g}  {MEASURES[name]}" for name, number in measures.items()]
    head = f"{story.name}: {story.title}\n{len(story.nodes)} nodes, {durations.text(story.lasts)}, by {scheduler}\n"
    held = "all expectations hold"
    return "\n".join([head, *numbers, "", *([f"FAILED: {each}" for each in violations] or [held])])


class ScenarioProgress:
    """Prints the progress of a long scenario on stderr."""

    def __init__(self, lasts: float) -> None:
        self._lasts = lasts
        self._said = time.monotonic()

    def at(self, seconds: float) -> None:
        if time.monotonic() - self._said > SAY_EVERY:
            self._said = time.monotonic()
            print(f"{seconds:,.0f} of {self._lasts:,.0f} seconds played", file=sys.stderr, flush=True)
