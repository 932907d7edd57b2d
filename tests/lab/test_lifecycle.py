"""`numalign lab` as people type it: up, looked at, down, and what is left after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from numalign.lab import state
from numalign.lab.state import Running

PATIENCE = 120.0
SMALL = "--nodes 1 --no-controllers"


@pytest.fixture
def home(able: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Labs of this test alone, all of them down in the end."""
    monkeypatch.setenv(state.SHELF.variable, str(tmp_path))
    yield tmp_path
    for name in state.SHELF.names():
        numalign(f"lab down {name}")


def numalign(line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "numalign.cli", *line.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def up(name: str) -> Running:
    done = numalign(f"lab up --name {name} {SMALL}")
    assert done.returncode == 0, done.stderr
    found = state.SHELF.running(name)
    assert found is not None
    assert f"export KUBECONFIG={found.kubeconfig}" in done.stdout
    return found


def running(lab: Running) -> list[str]:
    return [piece.title for piece in lab.pieces if piece.runs]


def mounted(place: Path) -> list[str]:
    """Processes that see something mounted from this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if str(place) in process.read_text():
                found.append(process.parent.name)
        except OSError:
            continue
    return found


def awaited(reached: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if reached():
            return True
        time.sleep(0.1)
    return False


def test_down_leaves_no_process_no_mount_and_no_file(home: Path) -> None:
    lab = up("one")
    assert running(lab) == [piece.title for piece in lab.pieces]
    assert mounted(home)
    assert numalign("lab down one").returncode == 0
    assert running(lab) == []
    assert mounted(home) == []
    assert list(home.iterdir()) == []


def test_a_second_lab_runs_beside_the_first_and_survives_it(home: Path) -> None:
    first, second = up("first"), up("second")
    assert "already" in numalign(f"lab up --name first {SMALL}").stderr
    assert numalign("lab down first").returncode == 0
    assert running(first) == []
    assert running(second) == [piece.title for piece in second.pieces]
    assert numalign("lab shell --name second node-0 kubectl get node node-0").returncode == 0


def test_nothing_survives_a_lab_that_is_killed(home: Path) -> None:
    lab = up("killed")
    os.kill(lab.pid, signal.SIGKILL)
    assert awaited(lambda: not running(lab))
    assert awaited(lambda: not mounted(home))
    assert "killed: has ended" in numalign("lab status").stdout
    assert numalign("lab down killed").returncode == 0
    assert list(home.iterdir()) == []


def test_what_ends_on_a_node_is_started_again(home: Path) -> None:
    lab = up("tended")
    kubelet = next(piece for piece in lab.pieces if piece.name == "kubelet")
    assert kubelet.pid is not None
    os.kill(kubelet.pid, signal.SIGKILL)
    # Until its end is noticed, the status still shows the first one.
    assert awaited(lambda: "started 2 times" in numalign("lab status").stdout)


def test_a_shell_sees_the_machine_of_its_node(home: Path) -> None:
    up("shown")
    shown = numalign("lab shell --name shown node-0 cat /sys/devices/system/node/online /proc/sys/kernel/panic")
    assert shown.stdout == "0-1\n10\n"
    assert "kubelet" in numalign("lab logs --name shown node-0/kubelet").stdout.lower()
