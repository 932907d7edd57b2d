"""The cgroups of a lab, on folders that stand for hierarchies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from numalign.lab import processes
from numalign.lab.containers import cgroups
from numalign.lab.launching import LEAF


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "mountinfo"
    monkeypatch.setattr(cgroups, "MOUNTS", file)
    monkeypatch.setattr(cgroups, "ROOT", str(tmp_path / "cgroup"))
    return file


def mount(file: Path, *hierarchies: tuple[str, str]) -> None:
    root = file.parent / "cgroup"
    lines = [f"30 23 0:26 / {root / name} rw,relatime shared:5 - {kind} {kind} rw" for name, kind in hierarchies]
    file.write_text("\n".join(["22 1 0:2 / / rw - ext4 /dev/vda rw", *lines, ""]))
    for name, _ in hierarchies:
        (root / name).mkdir(parents=True)


def test_only_hierarchies_are_found(mounts: Path) -> None:
    mount(mounts, ("cpu", "cgroup"), ("unified", "cgroup2"), ("beside", "tmpfs"))
    assert [path.name for path in cgroups.hierarchies()] == ["cpu", "unified"]


def test_a_hierarchy_that_somebody_mounted_elsewhere_is_not_touched(mounts: Path) -> None:
    mounts.write_text("30 23 0:26 / /elsewhere/cgroup rw - cgroup2 cgroup2 rw\n")
    assert cgroups.hierarchies() == []


def test_a_node_has_a_cgroup_with_one_for_its_programs_in_every_hierarchy(mounts: Path) -> None:
    mount(mounts, ("cpu", "cgroup"), ("memory", "cgroup"))
    made = cgroups.make("lab-1", "node-0")
    assert [Path(root).name for root in made] == ["cpu", "memory"]
    assert all(Path(folder, LEAF).is_dir() for folder in made.values())
    assert cgroups.make("lab-1", "node-0") == made


def test_a_cgroup_of_version_1_gets_the_cpus_of_the_one_above(mounts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(mounts, ("cpuset", "cgroup"))
    (root,) = cgroups.hierarchies()
    (root / "cpuset.cpus").write_text("0-1\n")
    (root / "cpuset.mems").write_text("0\n")
    plain = Path.mkdir

    def as_the_kernel_does(folder: Path, **options: bool) -> None:
        plain(folder, **options)
        for name in ("cgroup.clone_children", *cgroups.CPUSET):
            (folder / name).touch()

    monkeypatch.setattr(Path, "mkdir", as_the_kernel_does)
    made = cgroups.make("lab-1", "node-0")
    below = Path(made[str(root)], LEAF)
    assert [(below / name).read_text() for name in cgroups.CPUSET] == ["0-1\n", "0\n"]


def test_sweeping_removes_the_cgroups_of_that_lab_and_no_others(mounts: Path) -> None:
    mount(mounts, ("cpu", "cgroup"), ("memory", "cgroup"))
    cgroups.make("lab-1", "node-0")
    others = cgroups.make("lab-10", "node-0")
    assert cgroups.sweep("lab-1")
    assert cgroups.sweep("lab-1")
    assert [path.name for root in cgroups.hierarchies() for path in root.iterdir()] == ["lab-10", "lab-10"]
    assert all(Path(folder).is_dir() for folder in others.values())


def test_what_is_left_in_a_cgroup_is_ended(mounts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount(mounts, ("cpu", "cgroup"))
    made = cgroups.make("lab-1", "node-0")
    members = Path(*made.values(), "cgroup.procs")
    with subprocess.Popen(["/bin/sleep", "600"]) as left:
        members.write_text(f"0\n{left.pid}\n")
        monkeypatch.setattr(cgroups, "PATIENCE", 0.0)
        # A file in the folder, unlike the kernel's, keeps it from being removed.
        assert not cgroups.sweep("lab-1")
        left.wait()
    assert processes.started_at(left.pid) is None
