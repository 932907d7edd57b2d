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
from numalign.simulator import registry
from numalign.simulator.registry import RunningCluster

ELSEWHERE = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMALIGN_CLUSTERS", str(tmp_path))
    return tmp_path


def hold(name: str, stubborn: bool, ready: Connection) -> None:
    """A cluster that does nothing but hold its folder."""
    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with registry.held(name) as place:
        registry.announce(place, said(name, os.getpid()))
        ready.send(None)
        signal.pause()


def said(name: str, pid: int) -> RunningCluster:
    return RunningCluster(name=name, pid=pid, url="http://127.0.0.1:1", kubeconfig="k", nodes=1, words="one node")


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
    assert registry.running("a") == said("a", holder.pid)
    assert registry.every() == [said("a", holder.pid)]


def test_a_folder_is_held_once(holder: SpawnProcess) -> None:
    with pytest.raises(registry.AlreadyRuns, match=r"Cluster a.*already runs"), registry.held("a"):
        pass


def test_a_cluster_ends_when_asked_and_leaves_the_name_free(holder: SpawnProcess) -> None:
    assert registry.end("a")
    assert registry.running("a") is None
    with registry.held("a"):
        pass


def test_a_cluster_that_died_does_not_run_whatever_its_folder_says(holder: SpawnProcess) -> None:
    holder.kill()
    holder.join()
    assert registry.running("a") is None
    assert registry.every() == []
    assert not registry.end("a")


def test_a_cluster_that_will_not_end_is_ended(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.2)
    ours, theirs = ELSEWHERE.Pipe()
    process = ELSEWHERE.Process(target=hold, args=("b", True, theirs), daemon=True)
    process.start()
    ours.recv()
    assert registry.end("b")
    process.join()
    assert process.exitcode == -signal.SIGKILL


def test_nothing_runs_where_nothing_was_started() -> None:
    assert registry.running("a") is None
    assert registry.every() == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "UPPER", "x" * 64])
def test_names_are_kept_inside_their_folder(name: str) -> None:
    with pytest.raises(BadObject, match="is not a valid name"):
        registry.folder(name)


def test_a_folder_with_garbage_is_no_cluster(home: Path) -> None:
    with registry.held("a") as place:
        (place / "cluster.json").write_text("{")
        assert registry.every() == []


def test_a_folder_that_others_can_change_is_refused(home: Path) -> None:
    (home / "a").mkdir(mode=0o700)
    (home / "a").chmod(0o777)
    with pytest.raises(BadObject, match=r"others can write .*NUMALIGN_CLUSTERS"), registry.held("a"):
        pass


def test_a_folder_of_another_user_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "a").mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(home / "a", 1234, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 1234)
    with pytest.raises(BadObject, match="belongs to another user"), registry.held("a"):
        pass


def test_a_link_in_place_of_a_folder_is_refused(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (home / "a").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(BadObject, match="is not a folder"), registry.held("a"):
        pass


def test_folders_in_a_place_that_others_can_change_are_refused(home: Path) -> None:
    home.chmod(0o777)
    with pytest.raises(BadObject, match="others can write"), registry.held("a"):
        pass


def test_folders_in_a_place_like_tmp_are_safe(home: Path) -> None:
    home.chmod(0o1777)
    with registry.held("a") as place:
        assert place.stat().st_mode & 0o777 == 0o700


def test_what_is_removed_leaves_nothing(home: Path) -> None:
    with registry.held("a") as place:
        (place / "kubeconfig").write_text("token")
    registry.remove("a")
    assert os.listdir(home) == []


def test_what_runs_is_not_removed(holder: SpawnProcess, home: Path) -> None:
    with pytest.raises(registry.AlreadyRuns):
        registry.remove("a")
    assert (home / "a").is_dir()
