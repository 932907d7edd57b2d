"""Folders of clusters that run in the background: who holds one, what it says, how it ends."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.process import background
from numalign.simulator import hosting
from numalign.simulator.hosting import Running

ELSEWHERE = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMALIGN_CLUSTERS", str(tmp_path))
    return tmp_path


def hold(name: str, stubborn: bool, ready: Connection) -> None:
    """A cluster that does nothing but hold its folder."""
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with hosting.held(name) as place:
        hosting.announce(place, said(name, os.getpid()))
        ready.send(None)
        signal.pause()


def said(name: str, pid: int) -> Running:
    return Running(name=name, pid=pid, url="http://127.0.0.1:1", kubeconfig="k", nodes=1, words="one node")


@pytest.fixture
def holder(home: Path) -> Iterator[SpawnProcess]:
    ours, theirs = ELSEWHERE.Pipe()
    process = ELSEWHERE.Process(target=hold, args=("a", False, theirs), daemon=True)
    process.start()
    ours.recv()
    yield process
    process.kill()
    process.join()


def test_a_cluster_that_runs_says_what_it_is(holder: SpawnProcess) -> None:
    assert holder.pid is not None
    assert hosting.running("a") == said("a", holder.pid)
    assert hosting.every() == [said("a", holder.pid)]


def test_a_folder_is_held_once(holder: SpawnProcess) -> None:
    with pytest.raises(hosting.AlreadyRuns, match=r"Cluster a.*runs already"), hosting.held("a"):
        pass


def test_a_cluster_ends_when_asked_and_leaves_the_name_free(holder: SpawnProcess) -> None:
    assert hosting.end("a")
    assert hosting.running("a") is None
    with hosting.held("a"):
        pass


def test_a_cluster_that_died_does_not_run_whatever_its_folder_says(holder: SpawnProcess) -> None:
    holder.kill()
    holder.join()
    assert hosting.running("a") is None
    assert hosting.every() == []
    assert not hosting.end("a")


def test_a_cluster_that_will_not_end_is_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.2)
    ours, theirs = ELSEWHERE.Pipe()
    process = ELSEWHERE.Process(target=hold, args=("b", True, theirs), daemon=True)
    process.start()
    ours.recv()
    assert hosting.end("b")
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_nothing_runs_where_nothing_was_started() -> None:
    assert hosting.running("a") is None
    assert hosting.every() == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "UPPER", "x" * 64])
def test_names_are_kept_inside_their_folder(name: str) -> None:
    with pytest.raises(BadObject, match="is no name"):
        hosting.folder(name)


def test_a_folder_with_garbage_is_no_cluster(home: Path) -> None:
    with hosting.held("a") as place:
        (place / "cluster.json").write_text("{")
        assert hosting.every() == []
