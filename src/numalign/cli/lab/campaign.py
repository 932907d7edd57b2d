"""`numalign lab campaign`: random pods and faults on a lab of real kubelets, with a report."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.api.errors import BadObject
from numalign.cli import output, recordings

if TYPE_CHECKING:
    from numalign.lab.campaign.history import Line
    from numalign.lab.campaign.report import Report
    from numalign.lab.campaign.running import Asked

INTERRUPTED = 130


def campaign(
    minutes: Annotated[float, typer.Option(min=0.1, max=1440, help="duration of load and faults")] = 5,
    seed: Annotated[int, typer.Option(help="seed of all pods and faults")] = 1,
    name: Annotated[str, typer.Option("--name", help="name of the lab")] = "campaign",
    record: Annotated[Path | None, typer.Option(help="write the history to this file, one JSON line per event")] = None,
    logs: Annotated[Path | None, typer.Option(help="keep the logs of the lab in this folder")] = None,
    fmt: Annotated[output.Format, typer.Option("-o", "--output", help="how to print the report")] = output.Format.TABLE,
) -> None:
    """Run random pods and faults on real kubelets for some minutes, and report every broken promise.

    Exit code: 0 if no pod was rejected, mispredicted or lost and no report was late, 1 if one was or the lab failed,
    2 if the options or this machine do not allow it, 130 if it was interrupted without a finding."""
    from numalign.cli.lab import host
    from numalign.lab.campaign import history, report, running
    from numalign.lab.errors import LabError

    asked = running.Asked(minutes=minutes, seed=seed, name=name, logs=logs)
    try:
        host.require(running.lab(asked))
    except (BadObject, LabError) as problem:
        output.fail(str(problem))
    recordings.require_file(record)
    recordings.require_folder(logs)
    try:
        told, lines = _played(asked)
    except LabError as problem:
        output.fail(str(problem), code=1)
    output.show(report.text(told) if fmt is output.Format.TABLE else output.structured(told, fmt))
    recordings.write(record, history.encode(lines))
    raise typer.Exit(1 if not told.good else INTERRUPTED if told.run.interrupted else 0)


def _played(asked: Asked) -> tuple[Report, list[Line]]:
    from numalign.kube import clock
    from numalign.lab.campaign import running

    # An unavailable server is part of the campaign.
    logging.getLogger("numalign.kube").setLevel(logging.ERROR)
    with clock.event_loop_runner() as runner:
        return runner.run(running.run(asked, _say))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
