"""`plan sweep`: no finished run is lost, results are the same on any number of processes, and the page shows them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from numalign.api.errors import BadObject
from numalign.plan.sweep import grid, page, runner
from numalign.plan.sweep.runner import FinishedRun, Journal, Subject, Task
from tests.machinescenes import node
from tests.unit.plan.plannedclusters import cluster, kind
from tests.unit.scheduler.servers import owned, trainer


def subject() -> Subject:
    running = [owned(trainer(f"t-{number}", gpus=2), "set-1") for number in range(3)]
    return Subject(
        taken=cluster(node("a", running=running), node("b")), kinds=(kind("more", pods=4, cpu="8", gpu="3"),)
    )


def tasks(*vary: str, seeds: int = 2) -> list[Task]:
    points = grid.points(grid.dimensions(vary), seeds)
    return [Task(point=point, seed=seed) for point in points for seed in range(seeds)]


def still() -> float:
    return 0.0


class Killer:
    """A clock: the process that looks at it ends, but for the first that does."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __call__(self) -> float:
        try:
            self._mark.open("x").close()
        except FileExistsError:
            return 0.0
        os.kill(os.getpid(), signal.SIGKILL)
        return 0.0


VARY = ("topology-policy=-,best-effort", "lose=0,1")


def test_a_grid_has_every_combination() -> None:
    points = grid.points(grid.dimensions(["topology-policy=-,best-effort", "reserved-cpus=0-1,64;0"]), 1)
    assert [grid.label(point) for point in points] == [
        "topology-policy -, reserved-cpus 0-1,64",
        "topology-policy -, reserved-cpus 0",
        "topology-policy best-effort, reserved-cpus 0-1,64",
        "topology-policy best-effort, reserved-cpus 0",
    ]


@pytest.mark.parametrize(
    "vary, why",
    [
        (["topology-policy"], "is not OPTION=VALUE"),
        (["lose=1,"], "is not OPTION=VALUE"),
        (["colour=red"], "cannot be varied"),
        (["lose=1", "lose=2"], "given twice"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(vary: list[str], why: str) -> None:
    with pytest.raises(BadObject, match=why):
        grid.dimensions(vary)


def test_too_many_runs_are_refused_before_the_first() -> None:
    many = ",".join(map(str, range(1000)))
    with pytest.raises(BadObject, match=r"1,000,000 runs are more than 100,000"):
        grid.points(grid.dimensions([f"lose={many}"]), 1000)


def test_processes_find_what_one_finds_even_if_one_is_killed(tmp_path: Path) -> None:
    wanted, about = tasks(*VARY), subject()
    alone = {row.key: row for row in runner.runs(about, wanted, 1, still)}
    killed = {row.key: row for row in runner.runs(about, wanted, 2, Killer(tmp_path / "mark"))}
    assert killed == alone
    assert (tmp_path / "mark").exists()
    assert len(alone) == len(wanted)
    assert any(row.figures is not None and row.figures.moved for row in alone.values())


def test_a_journal_that_was_torn_keeps_every_finished_run(tmp_path: Path) -> None:
    wanted, about = tasks(*VARY), subject()
    journal = Journal(tmp_path, about.digest(), "1")
    rows = list(runner.runs(about, wanted[:3], 1, still))
    for row in rows:
        journal.add(row)
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b'{"point":{"topology-pol')
    again = Journal(tmp_path, subject().digest(), "1")
    assert list(again.rows.values()) == rows
    left = [task for task in wanted if task.key not in again.rows]
    assert len(left) == len(wanted) - 3
    for row in runner.runs(about, left, 1, still):
        again.add(row)
    again.close()
    whole = Journal(tmp_path, about.digest(), "1")
    assert set(whole.rows) == {task.key for task in wanted}
    whole.close()


def test_a_journal_of_another_cluster_version_or_process_is_not_mixed_in(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "one", "1")
    with pytest.raises(BadObject, match="is in use by another sweep"):
        Journal(tmp_path, "one", "1")
    journal.close()
    with pytest.raises(BadObject, match="has runs of another cluster or workload"):
        Journal(tmp_path, "other", "1")
    with pytest.raises(BadObject, match="has runs of numalign 1"):
        Journal(tmp_path, "one", "2")
    (tmp_path / runner.JOURNAL).write_text("nonsense\n")
    with pytest.raises(BadObject, match="is no journal of a sweep"):
        Journal(tmp_path, "one", "1")


def test_a_point_at_which_no_kubelet_starts_is_a_row_that_says_so() -> None:
    (row,) = runner.runs(subject(), tasks("cpu-options=no-such-option", seeds=1), 1, still)
    assert row.figures is None
    assert "would not start" in row.problem


def test_the_page_plots_every_figure_that_differs_and_is_the_same_every_time(tmp_path: Path) -> None:
    rows = list(runner.runs(subject(), tasks(*VARY), 1, still))
    made = page.page(rows)
    assert made == page.page(rows)
    shown = page.figures(rows)
    assert "running" in shown
    assert "lost" not in shown or len({number for each in shown["lost"].values() for number in each}) > 1
    images = made.split("<svg")[1:]
    assert len(images) == len(shown)
    for image in images:
        ElementTree.fromstring("<svg" + image[: image.index("</svg>") + len("</svg>")])
    assert page.write(tmp_path, rows, "table") == ["results.csv", "results.parquet", "index.html"]


def test_parquet_and_csv_have_the_same_lines(tmp_path: Path) -> None:
    from pyarrow import parquet

    rows = list(runner.runs(subject(), tasks("lose=0,1"), 1, still))
    page.write(tmp_path, rows, "")
    assert parquet.read_table(tmp_path / page.PARQUET).to_pylist() == runner.lines(rows)


def test_rows_survive_their_file_format() -> None:
    (row, *_) = runner.runs(subject(), tasks(*VARY), 1, time.monotonic)
    assert msgspec.json.decode(msgspec.json.encode(row), type=FinishedRun) == row
