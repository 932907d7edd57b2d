"""`plan sweep --dask`: on a cluster of several workers, each a process of its own, of which one is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.plan.sweep import daskcluster, runner
from numalign.plan.sweep.daskcluster import PATIENCE
from numalign.plan.sweep.runner import FinishedRun
from tests.unit.plan.test_sweep import VARY, still, subject, tasks

WORKERS = 3
MOST_DEATHS = 4
ADDRESS = re.compile(r"Scheduler at:\s+(tcp://\S+)")
REGISTERED = re.compile(r"(Registered to)")
LONG = 300.0


class Program:
    """A program of Dask, with its log."""

    def __init__(self, folder: Path, name: str, *command: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            dask = [sys.executable, "-m", "dask", *command]
            variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
            self.process = subprocess.Popen(dask, stdout=log, stderr=log, cwd=folder, env=variables)

    def until(self, words: re.Pattern[str]) -> str:
        until = time.monotonic() + LONG
        while time.monotonic() < until and self.process.poll() is None:
            found = words.search(self.log.read_text())
            if found is not None:
                return found[1]
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def program(folder: Path, name: str, *command: str) -> Iterator[Program]:
    found = Program(folder, name, *command)
    try:
        yield found
    finally:
        found.kill()


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Program]:
    with program(tmp_path, "scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard") as found:
        yield found


def worker(folder: Path, number: int, address: str) -> Any:
    usual = ("--nthreads", "2", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1")
    return program(folder, f"worker-{number}", "worker", address, *usual)


def alone() -> dict[str, FinishedRun]:
    return {row.key: row for row in runner.runs(subject(), tasks(*VARY, seeds=4), 1, still)}


def test_no_run_is_lost_when_a_worker_is_killed_in_the_middle(scheduler: Program, tmp_path: Path) -> None:
    address, found = scheduler.until(ADDRESS), dict[str, FinishedRun]()
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(tmp_path, each, address)) for each in range(WORKERS)]
        for each in workers:
            each.until(REGISTERED)
        wanted = tasks(*VARY, seeds=4)
        for row in daskcluster.runs(address, subject(), wanted, still, time.monotonic, LONG):
            assert row.key not in found
            found[row.key] = row
            if len(found) == 2:
                workers[0].kill()
    assert found == alone()
    assert len(found) == len(wanted)


def test_without_workers_the_sweep_ends_and_says_what_to_start(scheduler: Program) -> None:
    address = scheduler.until(ADDRESS)
    with pytest.raises(
        BadObject, match=r"no worker for 3 s; start some with `dask worker tcp://.*Finished runs are kept"
    ):
        list(daskcluster.runs(address, subject(), tasks("lose=0"), still, time.monotonic, 3.0))


class Deadly:
    """A clock that ends every process that looks at it."""

    def __call__(self) -> float:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0.0


def test_a_run_that_kills_one_worker_after_the_other_ends_the_sweep(scheduler: Program, tmp_path: Path) -> None:
    """Dask gives a run up with the fourth worker that dies of it."""
    address = scheduler.until(ADDRESS)
    with ExitStack() as stack:
        for each in [stack.enter_context(worker(tmp_path, each, address)) for each in range(MOST_DEATHS)]:
            each.until(REGISTERED)
        with pytest.raises(BadObject, match="its workers die; memory may be short"):
            list(daskcluster.runs(address, subject(), tasks("lose=0", seeds=1), Deadly(), time.monotonic, LONG))


def test_a_scheduler_that_ends_ends_the_sweep(scheduler: Program, tmp_path: Path) -> None:
    address, found = scheduler.until(ADDRESS), list[FinishedRun]()

    def go() -> None:
        for row in daskcluster.runs(address, subject(), tasks(*VARY, seeds=20), still, time.monotonic, 20.0):
            found.append(row)
            if len(found) == 2:
                scheduler.kill()

    with worker(tmp_path, 0, address), pytest.raises(BadObject, match="Finished runs are kept"):
        go()
    assert len(found) >= 2


def test_where_no_scheduler_answers_the_address_is_named() -> None:
    with pytest.raises(BadObject, match=r"tcp://127.0.0.1:1, --dask: no Dask scheduler answers"):
        list(daskcluster.runs("tcp://127.0.0.1:1", subject(), tasks("lose=0"), still, time.monotonic, 1.0))


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadObject, match=r"pip install 'numalign\[dask\]'"):
        list(daskcluster.runs("tcp://127.0.0.1:1", subject(), [], still, time.monotonic, PATIENCE))


def test_the_extra_is_not_needed_otherwise() -> None:
    """Neither the command nor the planner imports Dask unless it is asked for."""
    code = (
        "import sys, numalign.plan.sweep.daskcluster, numalign.cli.commands.plan; print('distributed' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
