"""`numalign oracle`: compares numalign with the real components, recorded or asked now.

Parses, calls `numalign.oracle`, prints. Exit code 0 only if there were cases and all agree, 1 if some differ, 2 if a
file or a program cannot be used. The commands import the model, so that help stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from numalign.cli import output
from numalign.cli.output import Format

if TYPE_CHECKING:
    from numalign.cli.devkit.replays import ReplayedFiles
    from numalign.oracle.fuzz import FuzzPlan, FuzzSummary
    from numalign.oracle.kubelet.replay import ReaskedCase, ReplayVerdict
    from numalign.oracle.sources import KubeletSource, Source

DIFFERENT = 1
QUIET_SECONDS, REDRAW_SECONDS = 2.0, 0.2
MINUTE = 60.0
Done = TypeVar("Done", "ReplayVerdict", "ReaskedCase")

app = typer.Typer(no_args_is_help=True)

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Recorded cases: JSON or JSON lines, plain or compressed (gzip, xz)."),
]
Show = Annotated[int, typer.Option("--show", min=0, metavar="N", help="In a table: show the first N that differ.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format; json and yaml list every difference.")]


KUBELET = "kubelet[@MINOR]"
Instead = Annotated[
    str | None, typer.Option("--against", metavar=KUBELET, help="Ask this real kubelet, then the model.")
]
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar=f"{KUBELET}|reference|scheduler|rte|nfd",
        help="The real component to ask; default: the newest kubelet.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the cases.")]
Cases = Annotated[int, typer.Option("--cases", min=1, metavar="N", help="Number of cases.")]
Minutes = Annotated[float | None, typer.Option("--minutes", min=0.01, metavar="N", help="Stop after this time.")]
Workers = Annotated[int, typer.Option("--workers", min=1, metavar="N", help="Number of worker processes.")]
Found = Annotated[Path, typer.Option("--found", metavar="FOLDER", help="Folder for disagreements.")]
FOUND = Path("tests/oracle/found")


@app.callback()
def oracle() -> None:
    """Compare numalign's answers with those of the real components."""


@app.command(epilog="Example: numalign oracle replay tests/oracle/data/*.jsonl.xz")
def replay(files: Files, show: Show = 5, fmt: Output = Format.TABLE, against: Instead = None) -> None:
    """Replay recorded cases against the model, and compare every recorded field with its answer.

    With --against, ask a real kubelet and compare the model with its answers. Exit code: 0 if all cases agree, 1 if
    one differs, 2 if a file or a program cannot be used."""
    from numalign.api import errors
    from numalign.cli.devkit import replays

    if against is not None:
        _reasked(files, against, show=show, fmt=fmt)
        return
    try:
        report = _report(files)
    except errors.BadObject as bad:
        output.fail(str(bad))
    output.show(replays.table(report, show) if fmt is Format.TABLE else output.structured(replays.result(report), fmt))
    if report.diverged:
        raise typer.Exit(DIFFERENT)


def _report(files: Iterable[Path]) -> ReplayedFiles:
    from numalign.cli.devkit.replays import ReplayedFiles
    from numalign.oracle import recorded
    from numalign.oracle.kubelet import replay, vectors

    collected = {path: recorded.load(path) for path in files}
    cases = vectors.load(path for path, found in collected.items() if found is None)
    plugins = recorded.summed(recorded.judge(case) for found in collected.values() for case in found or ())
    verdicts = replay.replay(cases)
    return ReplayedFiles(replay.summed(_watched(verdicts, len(cases)) if is_watched() else verdicts), plugins)


def _reasked(files: Iterable[Path], against: str, *, show: int, fmt: Format) -> None:
    from numalign.api import errors
    from numalign.cli.devkit import reasked
    from numalign.lab.errors import LabError
    from numalign.oracle import sources
    from numalign.oracle.harness.ask import ProgramError

    try:
        source = sources.kubelet(against)
        asked = _answers(files, source)
    except (errors.BadObject, LabError, ProgramError) as problem:
        output.fail(str(problem))
    result = reasked.result(asked, source.version)
    output.show(reasked.table(asked, source.version, show) if fmt is Format.TABLE else output.structured(result, fmt))
    if not reasked.agreed(asked):
        raise typer.Exit(DIFFERENT)


def _answers(files: Iterable[Path], source: KubeletSource) -> list[ReaskedCase]:
    from numalign.oracle.harness import ask
    from numalign.oracle.harness.ask import OracleProgram
    from numalign.oracle.kubelet import replay, vectors

    cases, path = vectors.load(files), source.program()
    with OracleProgram(path, ask.ONCE) as once, OracleProgram(path, ask.SURELY) as sure:
        asked = replay.reask(ask.ProgramPair(once, sure, source.judge), cases)
        return list(_watched(asked, len(cases)) if is_watched() else asked)


def is_watched() -> bool:
    return sys.stderr.isatty()


def _watched(cases: Iterable[Done], total: int) -> Iterator[Done]:
    """The same items, with progress on stderr after a moment."""
    redraw = monotonic() + QUIET_SECONDS
    for done, case in enumerate(cases, start=1):
        yield case
        if monotonic() >= redraw:
            redraw = monotonic() + REDRAW_SECONDS
            typer.echo(f"\r{done} of {total} cases", nl=False, err=True)
    typer.echo("\r\x1b[K", nl=False, err=True)


@app.command(epilog="Example: numalign oracle fuzz --against kubelet@1.36 --seed 7 --cases 20000")
def fuzz(
    against: Against = "kubelet",
    seed: Seed = 1,
    cases: Cases = 10_000,
    minutes: Minutes = None,
    workers: Workers = 2,
    found: Found = FOUND,
) -> None:
    """Generate cases, ask the real component and numalign, and save the disagreements.

    Exit code: 0 if all cases agree, 1 if not, 2 if the real component cannot be asked."""
    from numalign.cli.devkit import replays
    from numalign.oracle import fuzz

    plan = _plan(against, seed=seed, cases=cases, minutes=minutes, workers=workers)
    summary = fuzz.campaign(plan, _watching(cases))
    for judged in summary.found:
        small = fuzz.reduced(plan, judged)
        output.show(replays.disagreement(small, fuzz.save(small, found, plan.source)))
    output.show(replays.fuzz_table(summary))
    if summary.disagreements or not summary.compared:
        raise typer.Exit(DIFFERENT)


@app.command(epilog="Example: numalign oracle record --against kubelet@1.37 --seed 7 --cases 100 > cases.jsonl")
def record(against: Against = "kubelet", seed: Seed = 1, cases: Cases = 1_000) -> None:
    """Generate cases and print them with the real answers, one JSON line each.

    Exit code: 0, or 2 if the real component cannot be asked."""
    import msgspec

    from numalign.oracle import fuzz

    plan = _plan(against, seed=seed, cases=cases, minutes=None, workers=1)
    for answer in fuzz.recorded(plan):
        output.show(msgspec.json.encode(answer).decode())


def _plan(against: str, *, seed: int, cases: int, minutes: float | None, workers: int) -> FuzzPlan:
    from numalign.oracle import fuzz

    source, program = _source(against)
    return fuzz.FuzzPlan(program=program, source=source, seed=seed, cases=cases, minutes=minutes, workers=workers)


def _source(against: str) -> tuple[Source, Path]:
    from numalign.api import errors
    from numalign.lab.errors import LabError
    from numalign.oracle import sources

    try:
        source = sources.of(against)
        return source, source.program()
    except (errors.BadObject, LabError) as problem:
        output.fail(str(problem))


def _watching(total: int) -> Callable[[FuzzSummary], None]:
    """One line that is redrawn on a terminal, a new line per minute elsewhere."""
    due = monotonic() + MINUTE

    def watch(summary: FuzzSummary) -> None:
        nonlocal due
        line = f"{summary.drawn} of {total} cases, {summary.disagreements} disagreements"
        if is_watched():
            typer.echo(f"\r{line}", nl=False, err=True)
        elif monotonic() >= due:
            due = monotonic() + MINUTE
            typer.echo(line, err=True)

    return watch
