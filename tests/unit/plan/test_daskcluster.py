"""`plan sweep --dask` finds on a cluster of several workers what one process finds, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.plan.sweep import daskcluster, runner
from tests.unit.plan.test_sweep import VARY, still, subject, tasks

WORKERS = 3


@pytest.fixture
def dask() -> Iterator[Any]:
    """A Dask scheduler and its workers, each in a process of its own."""
    distributed: Any = import_module("distributed")
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as found:
        yield found


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_workers_find_what_one_process_finds_even_if_one_is_killed_in_the_middle(dask: Any) -> None:
    wanted, about = tasks(*VARY, seeds=4), subject()
    alone = {row.key: row for row in runner.runs(about, wanted, 1, still)}
    pids = [worker.pid for worker in dask.workers.values()]
    found: dict[str, runner.FinishedRun] = {}
    for row in daskcluster.runs(about, wanted, dask.scheduler_address, still):
        if not found:
            os.kill(pids[0], signal.SIGKILL)
        found[row.key] = row
    assert len(set(pids)) == WORKERS
    assert found == alone
    again = {row.key: row for row in daskcluster.runs(about, wanted[:3], dask.scheduler_address, still)}
    assert again == {key: row for key, row in alone.items() if key in again}


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense://x", "tcp://127.0.0.1:port"])
def test_an_address_where_no_scheduler_answers_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daskcluster, "PATIENCE", 1.0)
    with pytest.raises(BadObject, match=rf"{address}.*no Dask scheduler answers there"):
        list(daskcluster.runs(subject(), tasks(seeds=1), address, still))


def test_the_extra_is_named_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BadObject, match=r"pip install 'numalign\[dask\]'"):
        list(daskcluster.runs(subject(), tasks(seeds=1), "tcp://127.0.0.1:1", still))
