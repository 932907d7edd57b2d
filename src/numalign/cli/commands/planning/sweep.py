"""`numalign plan sweep`: many what-if questions at once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from numalign import __version__
from numalign.cli import fileio, output, sources
from numalign.cli.commands.planning import given
from numalign.cli.commands.planning.given import NOT_SO, Files, Output, PlanFormat, PlanSource, Requests
from numalign.cli.commands.planning.progress import Progress, seeds_of
from numalign.cli.options import bundled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numalign.plan.sweep.runner import FinishedRun, Subject, Task
    from numalign.scheduler.snapshot.snapshot import Snapshot

CLUSTER = "cluster.json.gz"
EXAMPLE = (
    "Example: numalign plan sweep --vary topology-policy=restricted,best-effort --vary zones-per-socket=1,4 "
    "--seeds 1-5 --out sweep"
)


@bundled
def sweep(
    source: PlanSource,
    vary: Annotated[
        list[str],
        typer.Option(metavar="OPTION=VALUES", help="An option of what-if with its values; -: as it is. Repeat it."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the results; it makes a sweep resumable.")],
    file: Files = [],  # noqa: B006
    requests: Requests = [],  # noqa: B006
    seeds: Annotated[str, typer.Option(metavar="SEEDS", help="Orders of arrival, as 1-5.")] = "1-5",
    from_empty: Annotated[bool, typer.Option("--from-empty", help="Create every pod again, on empty nodes.")] = False,
    workers: Annotated[
        int, typer.Option(metavar="N", min=0, max=256, help="Processes; 0: as many as there are cores.")
    ] = 0,
    dask: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Run on the workers of a Dask cluster, as tcp://host:8786.")
    ] = "",
    fmt: Output = PlanFormat.TABLE,
) -> None:
    """Ask what-if for every combination of values, with several orders of arrival.

    A sweep that was ended goes on where it was, with the same options and folder. Exit code: 0 if every run has
    figures, 1 if one has none, 2 if a file or the cluster cannot be read, or if
    the Dask cluster has no workers."""
    from numalign.cli.results.plans import lines
    from numalign.cli.results.plans import sweep as drawn
    from numalign.plan.sweep import grid, page, runner

    if dask and workers:
        output.fail("--workers and --dask are exclusive: the Dask cluster has its own workers")
    numbers = seeds_of(seeds, "plan sweep")
    points = grid.points(grid.dimensions(vary), len(numbers))
    kinds = given.kinds(file, requests, source)
    taken = _cluster(source, out)
    for point in points:
        grid.change(point, runner.names(taken), numbers[0], from_empty=from_empty)
    subject = runner.Subject(taken=taken, kinds=kinds, from_empty=from_empty)
    tasks = [runner.Task(point=point, seed=seed) for point in points for seed in numbers]
    journal = runner.Journal(out, subject.digest(), __version__)
    fileio.write(out / CLUSTER, runner.packed(taken))
    try:
        left = [task for task in tasks if task.key not in journal.rows]
        progress = Progress(len(tasks), "runs", time.monotonic, done=len(tasks) - len(left))
        with sources.at_once():
            for row in progress.of(_runs(subject, left, workers, dask)):
                journal.add(row)
    finally:
        journal.close()
    rows = [journal.rows[task.key] for task in tasks]
    made = page.write(out, rows, lines.text(runner.lines(rows)))
    output.say(f"{len(rows):,} runs, {len(left):,} of them new: {', '.join(str(out / name) for name in made)}")
    if page.missing():
        output.say(f"not installed: {', '.join(page.missing())}; pip install 'numalign[plan]' writes Parquet and plots")
    given.show(rows, fmt, given.Drawing(lambda: drawn.text(rows), lambda: runner.lines(rows)))
    raise typer.Exit(0 if all(row.figures is not None for row in rows) else NOT_SO)


def _runs(subject: Subject, tasks: Sequence[Task], workers: int, address: str) -> Iterator[FinishedRun]:
    from numalign.plan.sweep import daskcluster, runner

    if address and tasks:
        return daskcluster.runs(address, subject, tasks, time.monotonic, time.monotonic, daskcluster.PATIENCE)
    return runner.runs(subject, tasks, workers or os.cpu_count() or 1, time.monotonic)


def _cluster(source: PlanSource, out: Path) -> Snapshot:
    """A cluster that changes is kept beside the runs, so that a sweep that goes on has the same one."""
    from numalign.scheduler.snapshot import files

    kept = out / CLUSTER
    if not given.is_live(source) or not kept.exists():
        return given.snapshot(source)
    found = files.read(sources.content(str(kept)), str(kept), sources.configuration(source.config))
    output.say(f"going on with the cluster as it was at {found.wall}, from {kept}")
    return found
