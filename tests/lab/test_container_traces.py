"""A lab with real containers that ends, in whatever way: nothing of it stays on the machine, nothing was changed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from numalign.lab import state
from numalign.lab.containers import cgroups
from numalign.lab.state import LabState
from tests.lab import reals, traces
from tests.lab.labs import Labs

PATIENCE = 120.0
NAME = "ends"


@pytest.fixture
def home(labs: Labs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Labs of this test alone."""
    reals.need(labs, nodes=1)
    place = tmp_path / "labs"
    monkeypatch.setenv(state.INSTANCES.variable, str(place))
    yield place
    numalign("lab", "down", NAME)


def numalign(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "numalign.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def awaited(reached: Callable[[], object]) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if reached():
            return True
        time.sleep(0.1)
    return False


def down(lab: LabState) -> None:
    assert numalign("lab", "down", lab.name).returncode == 0


def killed(lab: LabState) -> None:
    os.kill(lab.pid, signal.SIGKILL)


def crashed(lab: LabState) -> None:
    os.kill(lab.pid, signal.SIGSEGV)


def kubectl(*words: str) -> str:
    done = numalign("lab", "shell", "--name", NAME, "node-0", "kubectl", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_pod(folder: Path) -> None:
    """A container, so that there is a shim, a pod's network, an overlay, and a volume in memory."""
    loaded = numalign("lab", "load", "--name", NAME, str(reals.probe_archive(folder.parent)))
    assert loaded.stdout == f"{reals.PROBE} is on 1 node\n", loaded.stderr
    volume = {"name": "memory", "emptyDir": {"medium": "Memory"}}
    mounted = [{"name": "memory", "mountPath": "/memory"}]
    container = {"name": "main", "image": reals.PROBE, "args": ["wait"], "volumeMounts": mounted}
    spec = {"nodeName": "node-0", "automountServiceAccountToken": False, "volumes": [volume], "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}
    kubectl("create", "--raw", "/api/v1/namespaces/default/pods", "-f", str(_written(pod, folder)))
    kubectl("wait", "pod", "one", "--for=condition=Ready", "--timeout=60s")


def _written(pod: Mapping[str, object], folder: Path) -> Path:
    """Where the node sees it, too: a node has its own /tmp."""
    file = folder / NAME / state.NODES / "node-0" / "pod.json"
    file.write_bytes(msgspec.json.encode(pod))
    return file


slow = pytest.mark.slow


@pytest.mark.parametrize("end", [killed, pytest.param(down, marks=slow), pytest.param(crashed, marks=slow)])
def test_nothing_stays_of_a_lab_that_ends(end: Callable[[LabState], None], home: Path) -> None:
    sysctls = traces.sysctls()
    up = numalign("lab", "up", NAME, "--runtime", "containerd", "--nodes", "1", "--no-controllers")
    assert up.returncode == 0, up.stderr
    lab = state.INSTANCES.running(NAME)
    assert lab is not None
    run_pod(home)
    found = traces.of(lab, home / NAME)
    assert found.link
    assert found.mounts
    assert {"pause", "probe", "containerd", "kubelet", "containerd-shim"} <= set(map(program, found.processes))
    assert any("/kubepods/" in each for each in found.cgroups)
    end(lab)
    assert awaited(lambda: traces.left(found, lab, home / NAME).gone), traces.left(found, lab, home / NAME)
    assert traces.sysctls() == sysctls
    if end is not down:
        assert f"{NAME}: ended or starting" in numalign("lab", "status").stdout
        down(lab)
    assert not (home / NAME).exists()


def program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path("/proc", str(pid), "comm").read_text().strip()
    return ""


@pytest.mark.slow
def test_nothing_stays_of_a_lab_that_does_not_come_up(home: Path) -> None:
    config = home.with_name("kubelet.yaml")
    config.write_text("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\nfeatureGates: {NoSuchGate: true}\n")
    wanted = (NAME, "--runtime", "containerd", "--nodes", "1", "--no-controllers")
    failed = numalign("lab", "up", *wanted, "--kubelet-config", str(config))
    assert failed.returncode == 1
    assert "unrecognized feature gate: NoSuchGate" in failed.stderr
    named = [path for root in cgroups.hierarchies() for path in root.glob(f"{cgroups.PREFIX}{NAME}-*")]
    assert named == []
