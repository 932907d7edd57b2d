"""`numalign oracle`: hold the model against cases that were recorded from the real kubelet.

Parses, calls `numalign.oracle`, prints. Exit code 0 only if there were cases and all of them agree, 1 if some differ,
2 if a file cannot be used. The model is imported by the command, so that help stays quick."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.oracle.replay import Report, Verdict

DIFFERENT = 1
QUIET_SECONDS, REDRAW_SECONDS = 2.0, 0.2

app = typer.Typer(no_args_is_help=True)

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Recorded cases: JSON or JSON lines, plain or compressed (gzip, xz)."),
]
Show = Annotated[int, typer.Option("--show", min=0, metavar="N", help="In a table: show the first N that differ.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print; json and yaml list every difference.")]


@app.callback()
def oracle() -> None:
    """Hold the model against what was recorded from the real kubelet."""


@app.command(epilog="Example: numalign oracle replay tests/oracle/data/*.jsonl.xz")
def replay(files: Files, show: Show = 5, fmt: Output = Format.TABLE) -> None:
    """Put recorded cases to the model, and compare every recorded field with its answer.

    Exit code: 0 if all cases agree, 1 if one differs, 2 if a file cannot be used."""
    from numalign.api import errors
    from numalign.cli import replayed

    try:
        report = _report(files)
    except errors.BadObject as bad:
        output.fail(str(bad))
    output.show(
        replayed.table(report, show) if fmt is Format.TABLE else output.structured(replayed.result(report), fmt)
    )
    if report.total.mismatches:
        raise typer.Exit(DIFFERENT)


def _report(files: Iterable[Path]) -> Report:
    from numalign.oracle import replay, vectors

    cases = vectors.load(files)
    verdicts = replay.replay(cases)
    return replay.summed(_watched(verdicts, len(cases)) if is_watched() else verdicts)


def is_watched() -> bool:
    return sys.stderr.isatty()


def _watched(verdicts: Iterable[Verdict], total: int) -> Iterator[Verdict]:
    """The same verdicts; whoever waits for more than a moment sees how far they are."""
    redraw = monotonic() + QUIET_SECONDS
    for done, verdict in enumerate(verdicts, start=1):
        yield verdict
        if monotonic() >= redraw:
            redraw = monotonic() + REDRAW_SECONDS
            typer.echo(f"\r{done} of {total} cases", nl=False, err=True)
    typer.echo("\r\x1b[K", nl=False, err=True)
