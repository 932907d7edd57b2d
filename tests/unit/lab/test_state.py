"""What is known of labs that run, and what is done about those that ended without a word."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from numalign.lab import processes, state
from numalign.lab.state import LabState, ProgramState


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(state.INSTANCES.variable, str(tmp_path))
    return tmp_path


@pytest.fixture
def left() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        yield process
        process.kill()


def piece(pid: int | None, began: int | None) -> ProgramState:
    return ProgramState(name="kubelet", node="node-0", log="", pid=pid, began=began, starts=1)


def told(*pieces: ProgramState) -> LabState:
    return LabState(name="a", pid=1, url="", kubeconfig="", tools="", words="", nodes=(), pieces=pieces)


def announced(home: Path, *pieces: ProgramState) -> None:
    (home / "a").mkdir()
    state.INSTANCES.announce(home / "a", told(*pieces))


def test_a_piece_runs_if_its_process_is_the_one_that_was_meant() -> None:
    mine = os.getpid()
    began = processes.started_at(mine)
    assert began is not None
    assert piece(mine, began).runs
    assert not piece(mine, began - 1).runs
    assert not piece(None, None).runs


def test_what_a_lab_left_behind_is_ended_and_removed(home: Path, left: subprocess.Popen[bytes]) -> None:
    announced(home, piece(left.pid, processes.started_at(left.pid)))
    assert state.clear("a")
    assert left.wait(10) == -9
    assert not (home / "a").exists()


def test_a_process_that_has_taken_over_an_id_is_left_alone(home: Path, left: subprocess.Popen[bytes]) -> None:
    began = processes.started_at(left.pid)
    assert began is not None
    announced(home, piece(left.pid, began - 1))
    assert state.clear("a")
    assert left.poll() is None


def test_there_is_nothing_to_clear_where_nothing_was() -> None:
    assert not state.clear("a")


def test_a_piece_is_called_by_its_node() -> None:
    assert piece(None, None).title == "node-0/kubelet"
