"""What a lab leaves on the machine: the folder that nodes are mounted over goes when nobody uses it any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.lab import preflight

MOUNTED = "61 30 254:0 /labs/other/nodes/node-0/kubelet {folder} rw,relatime - ext4 /dev/root rw\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "kubelet"
    made.mkdir()
    monkeypatch.setattr(preflight, "KUBELET_ROOT", str(made))
    monkeypatch.setattr(preflight, "PROCESSES", tmp_path / "proc")
    return made


def process(folder: Path, mounted: str) -> None:
    told = folder.parent / "proc" / "4711" / "mountinfo"
    told.parent.mkdir(parents=True)
    told.write_text(mounted)


def test_an_empty_folder_goes(folder: Path) -> None:
    process(folder, MOUNTED.format(folder=f"{folder}-of-somebody-else"))
    preflight.release()
    assert not folder.exists()


def test_a_folder_over_which_another_lab_is_mounted_stays(folder: Path) -> None:
    """Empty as it looks: removed, it would take the mounts of that lab's programs with it."""
    process(folder, MOUNTED.format(folder=folder))
    preflight.release()
    assert folder.exists()


def test_a_folder_with_something_in_it_stays(folder: Path) -> None:
    (folder / "config.yaml").touch()
    preflight.release()
    assert folder.exists()
