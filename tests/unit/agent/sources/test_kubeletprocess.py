"""Which process is the node's kubelet: every container is in the host's /proc and chooses its own name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import kubeletconfig
from tests.unit.agent import processes

ROOT = "/var/lib/kubelet"
POD = "pod0e3bd7a2-6a5c-4a58-8d3c-3c5d2b2a9a11"
IMPOSTORS: dict[str, dict[str, Any]] = {
    "another user": {"uids": "65534 65534 65534 65534"},
    "a user that became root in part": {"uids": "1000 0 0 0"},
    "a PID namespace of its own": {"inside": "1"},
    "a mount namespace of its own": {"mounts": "mnt:[2]"},
    "a pod": {"cgroup": f"0::/kubepods/burstable/{POD}/4f1c"},
    "a pod, by systemd": {"cgroup": f"0::/kubepods.slice/kubepods-{POD.replace('-', '_')}.slice/cri-4f1c.scope"},
    "a pod, seen from another pod": {"cgroup": f"0::/../../{POD}/4f1c"},
    "a static pod, seen from another pod": {"cgroup": "0::/../../pod0123456789abcdef0123456789abcdef/4f1c"},
    "a pod, in one of several hierarchies": {"cgroup": f"9:cpu:/\n8:pids:/kubepods/{POD}/4f1c\n0::/"},
}


def found(proc: Path) -> Any:
    return kubeletconfig.find_command_line(proc, ROOT)


def test_no_kubelet_can_be_seen_where_there_is_no_proc(tmp_path: Path) -> None:
    assert found(tmp_path) == (None, ())


@pytest.mark.parametrize("odd", IMPOSTORS.values(), ids=IMPOSTORS)
def test_an_impostor_beside_the_kubelet_changes_nothing(odd: dict[str, Any], tmp_path: Path) -> None:
    processes.process(tmp_path / "1", "mnt:[1]")
    processes.kubelet(tmp_path, 7, "--max-pods=7", started=50, **odd)
    processes.kubelet(tmp_path, 8, "--max-pods=8")
    line, problems = found(tmp_path)
    assert (line.overrides, problems) == ({"maxPods": 8}, ())


@pytest.mark.parametrize("odd", IMPOSTORS.values(), ids=IMPOSTORS)
def test_an_impostor_alone_is_not_believed(odd: dict[str, Any], tmp_path: Path) -> None:
    processes.process(tmp_path / "1", "mnt:[1]")
    processes.kubelet(tmp_path, 7, "--max-pods=7", **odd)
    line, (problem,) = found(tmp_path)
    assert (line, "process 7 is called kubelet" in problem) == (None, True)


@pytest.mark.parametrize("file", ["status", "cgroup"])
def test_what_cannot_be_checked_is_not_believed(file: str, tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 7)
    (tmp_path / "7" / file).unlink()
    assert found(tmp_path)[0] is None


def test_invalid_flags_of_an_impostor_are_not_read(tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 7, "--max-pods=many", uids="1 1 1 1")
    processes.kubelet(tmp_path, 8, "--max-pods=8")
    assert found(tmp_path)[0].overrides == {"maxPods": 8}


def test_without_the_right_to_see_namespaces_the_other_signs_decide(tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 8, "--max-pods=8")
    (tmp_path / "8/ns/mnt").unlink()
    assert found(tmp_path)[0].overrides == {"maxPods": 8}


def test_of_two_kubelets_the_one_that_sees_our_files_is_meant(tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 7, "--max-pods=7", mounts="mnt:[7]")
    processes.kubelet(tmp_path, 8, "--max-pods=8", mounts="mnt:[8]")
    processes.process(tmp_path / "self", "mnt:[8]")
    assert found(tmp_path)[0].overrides == {"maxPods": 8}


def test_kubelets_with_files_of_their_own_are_not_ours(tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 7, mounts="mnt:[7]")
    processes.kubelet(tmp_path, 8, mounts="mnt:[8]")
    assert found(tmp_path)[0] is None


def test_of_two_kubelets_that_cannot_be_distinguished_the_older_counts(tmp_path: Path) -> None:
    processes.kubelet(tmp_path, 7, "--max-pods=7", started=200)
    processes.kubelet(tmp_path, 8, "--max-pods=8", started=100)
    line, (problem,) = found(tmp_path)
    assert (line.overrides, "processes 8, 7 are kubelets" in problem) == ({"maxPods": 8}, True)
