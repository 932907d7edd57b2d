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

from numalign.lab import preflight, state
from numalign.lab.state import LabState
from tests.lab.labs import Labs

PATIENCE = 120.0
SMALL = "--nodes 1 --no-controllers"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"


@pytest.fixture(scope="module")
def home(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Labs of these tests alone, two at a time, all of them down in the end."""
    labs.make_room(2 * preflight.instances(1, 0))
    place = tmp_path_factory.mktemp("labs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(state.INSTANCES.variable, str(place))
        yield place
        for name in state.INSTANCES.names():
            numalign(f"lab down {name}")


@pytest.fixture(scope="module")
def first(home: Path) -> LabState:
    return up("first")


def numalign(line: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "numalign.cli", *line.split()]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def up(name: str) -> LabState:
    done = numalign(f"lab up {name} {SMALL}")
    assert done.returncode == 0, done.stderr
    found = state.INSTANCES.running(name)
    assert found is not None
    assert f"export KUBECONFIG={found.kubeconfig}" in done.stdout
    return found


def running(lab: LabState) -> list[str]:
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


def test_a_shell_sees_the_machine_of_its_node(first: LabState) -> None:
    shown = numalign("lab shell --name first node-0 cat /sys/devices/system/node/online /proc/sys/kernel/panic")
    assert shown.stdout == "0-1\n10\n"
    assert "kubelet" in numalign("lab logs --name first node-0/kubelet").stdout.lower()


def test_what_ends_on_a_node_is_started_again(first: LabState) -> None:
    kubelet = next(piece for piece in first.pieces if piece.name == "kubelet")
    assert kubelet.pid is not None
    os.kill(kubelet.pid, signal.SIGKILL)
    # Until its end is noticed, the status still shows the first one.
    assert awaited(lambda: "started 2 times" in numalign("lab status").stdout)


def test_a_second_lab_runs_beside_the_first_and_down_leaves_nothing_of_it(first: LabState, home: Path) -> None:
    assert "already" in numalign(f"lab up first {SMALL}").stderr
    second = up("second")
    assert running(second) == [piece.title for piece in second.pieces]
    assert mounted(home / "second")
    assert numalign("lab down second").returncode == 0
    assert (running(second), mounted(home / "second"), (home / "second").exists()) == ([], [], False)
    assert numalign("lab shell --name first node-0 kubectl get node node-0").returncode == 0


def test_nothing_survives_a_lab_that_is_killed(first: LabState, home: Path) -> None:
    last = state.INSTANCES.last_announced("first")
    assert last is not None
    assert running(last) == [piece.title for piece in last.pieces]
    os.kill(last.pid, signal.SIGKILL)
    assert awaited(lambda: not running(last))
    assert awaited(lambda: not mounted(home))
    assert "first: ended or starting" in numalign("lab status").stdout
    assert numalign("lab down first").returncode == 0
    assert list(home.iterdir()) == []


def test_a_lab_that_does_not_come_up_says_why_and_keeps_its_logs(home: Path, tmp_path: Path) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text(f"{STATIC}featureGates: {{NoSuchGate: true}}\n")
    failed = numalign(f"lab up broken {SMALL} --kubelet-config {config}")
    assert failed.returncode == 1
    assert "unrecognized feature gate: NoSuchGate" in failed.stderr
    assert "lab logs --name broken" in failed.stderr
    assert "NoSuchGate" in numalign("lab logs --name broken node-0/kubelet").stdout
