"""`numalign record`: reads the recordings that `numalign scheduler run --record` writes.

`list` and `show` print what a recording has, `repeat` makes decisions again, `compare` asks another configuration,
`export` and `trim` copy and delete. The commands import what they call when they run, so that help stays fast."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from numalign.api.errors import BadObject
from numalign.cli import amounts, output
from numalign.cli.commands import scheduler as schedulers
from numalign.cli.options import Output
from numalign.cli.output import Format

T = TypeVar("T")

DIFFERS = 1
SOON = 2.0
"""Seconds between two lines of progress."""

Recording = Annotated[
    str, typer.Argument(metavar="RECORDING", help="A folder of `scheduler run --record`, or an exported file.")
]
Pod = Annotated[str, typer.Option("--pod", metavar="NAMESPACE/NAME", help="Only attempts of this pod.")]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="Show this node in depth: reason, score and zones.")]
Since = Annotated[str, typer.Option("--since", metavar="DURATION", help="Only what is newer than this, as 10m or 3h.")]
SinceTime = Annotated[
    str,
    typer.Option("--since-time", metavar="TIME", help="Only what is newer than this time, as 2026-11-18T14:00:00Z."),
]
UntilTime = Annotated[str, typer.Option("--until-time", metavar="TIME", help="Only what is older than this time.")]
ConfigFile = Annotated[str, typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration.")]
Written = Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="The file to write; - is stdout.")]
Age = Annotated[str, typer.Option("--older-than", metavar="DURATION", help="Delete segments that ended before.")]
Size = Annotated[str, typer.Option("--keep-size", metavar="SIZE", help="Keep the newest segments up to this size.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def record() -> None:
    """Look into recordings of a scheduler, and repeat the decisions in them."""


@app.command("list", epilog="Example: numalign record list /var/lib/numalign/record")
def listed(recording: Recording, fmt: Output = Format.TABLE) -> None:
    """List the segments of a recording.

    Exit code: 0, or 2 if the recording cannot be read."""
    from numalign.cli.results import recordings as drawn
    from numalign.scheduler.playback import recordings

    found = list(_watched(recordings.summaries(Path(recording)), "segments read"))
    output.show(drawn.segments(found) if fmt is Format.TABLE else output.structured(found, fmt))


@app.command("show", epilog="Example: numalign record show recording.gz --pod default/web --since 1h")
def show(
    recording: Recording,
    pod: Pod = "",
    since: Since = "",
    since_time: SinceTime = "",
    until_time: UntilTime = "",
    fmt: Output = Format.TABLE,
) -> None:
    """List the attempts to schedule pods, the oldest first.

    Exit code: 0, or 2 if the recording cannot be read."""
    from numalign.cli.results import recordings as drawn
    from numalign.scheduler.playback import recordings

    first, last, wanted = _first(since, since_time), _time(until_time, "--until-time"), schedulers.qualified(pod)
    found = [
        each
        for each in _watched(recordings.attempts(Path(recording)), "attempts read")
        if wanted in ("", each.record.pod) and (not first or each.at >= first) and (not last or each.at <= last)
    ]
    output.show(drawn.attempts(found) if fmt is Format.TABLE else output.structured(found, fmt))


@app.command("repeat", epilog="Example: numalign record repeat recording.gz --pod default/web --node gpu-3")
def repeat(recording: Recording, pod: Pod = "", node: Node = "", fmt: Output = Format.TABLE) -> None:
    """Make the decisions of a recording again, and compare them with what the scheduler decided.

    Without --pod, all of them. Exit code: 0 if all are the same, 1 if one differs, 2 if the recording cannot be
    used."""
    from numalign.cli.results import recordings as drawn
    from numalign.scheduler.playback import recordings

    wanted = schedulers.qualified(pod)
    if node and not wanted:
        raise BadObject("record repeat", node, "--node", "needs --pod: the decision whose node is shown")
    found = [
        each
        for each in _watched(recordings.repeated(Path(recording), node=node), "decisions repeated")
        if wanted in ("", each.played.record.pod)
    ]
    if wanted and not found:
        output.fail(f"Recording {recording}: has no attempt of pod {wanted}")
    is_table = fmt is Format.TABLE
    output.show(
        drawn.repeated(found, with_each=bool(wanted)) if is_table else output.structured(drawn.plain(found), fmt)
    )
    if any(each.differs for each in found):
        raise typer.Exit(DIFFERS)


@app.command("compare", epilog="Example: numalign record compare recording.gz --config most-allocated.yaml")
def compare(recording: Recording, config: ConfigFile, fmt: Output = Format.TABLE) -> None:
    """Show what another configuration would have decided.

    Each decision is made in the situation that was: nodes and pods are as the recorded scheduler left them. Exit code:
    0, or 2 if recording or configuration cannot be used."""
    from numalign.cli.results import recordings as drawn
    from numalign.scheduler.playback import recordings

    other = schedulers.configuration(config)
    found = list(_watched(recordings.repeated(Path(recording), other), "decisions compared"))
    output.show(drawn.compared(found) if fmt is Format.TABLE else output.structured(drawn.plain(found), fmt))


@app.command("export", epilog="Example: numalign record export /var/lib/numalign/record --since 1h -f recording.gz")
def export(
    recording: Recording, file: Written, since: Since = "", since_time: SinceTime = "", until_time: UntilTime = ""
) -> None:
    """Write the segments of a time into one file, to attach it to a report or to repeat it elsewhere.

    A segment is copied as a whole. Exit code: 0, or 2 if nothing is that old or a file cannot be read or written."""
    from numalign.scheduler.playback import recordings

    first, last = _first(since, since_time), _time(until_time, "--until-time")
    try:
        if file == "-":
            copied = recordings.exported(Path(recording), sys.stdout.buffer, first, last)
        else:
            with Path(file).open("xb") as to:
                copied = recordings.exported(Path(recording), to, first, last)
    except OSError as problem:
        output.fail(f"{file} cannot be written: {problem.strerror or problem}")
    if not copied:
        output.fail(f"Recording {recording}: has nothing of that time")


@app.command("trim", epilog="Example: numalign record trim /var/lib/numalign/record --older-than 6h")
def trim(recording: Recording, older_than: Age = "", keep_size: Size = "") -> None:
    """Delete the oldest segments of a folder.

    Exit code: 0, or 2 if nothing says what to delete or the folder cannot be read."""
    from numalign.cli.results import recordings as drawn
    from numalign.scheduler.playback import recordings

    if not older_than and not keep_size:
        raise BadObject("record trim", recording, "--older-than", "is missing, and so is --keep-size: give one of them")
    oldest = (
        datetime.now(UTC) - timedelta(seconds=amounts.seconds(older_than, "record trim", "--older-than"))
        if older_than
        else None
    )
    most = amounts.size(keep_size, "record trim", "--keep-size") if keep_size else float("inf")
    try:
        gone = recordings.trimmed(Path(recording), most, oldest)
    except OSError as problem:
        output.fail(f"Recording {recording}: cannot be trimmed: {problem.strerror or problem}")
    output.show(drawn.trimmed(gone))


def _first(since: str, since_time: str) -> datetime | None:
    if since and since_time:
        raise BadObject("record", since, "--since", "cannot be used together with --since-time")
    if since:
        return datetime.now(UTC) - timedelta(seconds=amounts.seconds(since, "record", "--since"))
    return _time(since_time, "--since-time")


def _time(written: str, option: str) -> datetime | None:
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        raise BadObject("record", written, option, "is not a time; write one like 2026-11-18T14:00:00Z") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _watched(found: Iterable[T], what: str) -> Iterator[T]:
    """The same, with a line of progress on stderr now and then."""
    said = time.monotonic()
    for count, each in enumerate(found, start=1):
        yield each
        if time.monotonic() - said >= SOON:
            said = time.monotonic()
            typer.echo(f"{count:,} {what}", err=True)
