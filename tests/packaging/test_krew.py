"""`kubectl numalign` as Krew installs it: the archive is what the manifest says, and its program works by itself."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from numalign import __version__
from tests.packaging.test_distributions import PRODUCT, build
from tools import krew

URI = "https://example.com/kubectl-numalign.tar.gz"
PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==\S+")


class Built(NamedTuple):
    archive: bytes
    manifest: dict[str, Any]

    @property
    def platform(self) -> dict[str, Any]:
        [found] = self.manifest["spec"]["platforms"]
        assert isinstance(found, dict)
        return found

    def files(self) -> dict[str, tarfile.TarInfo]:
        with tarfile.open(fileobj=io.BytesIO(self.archive)) as opened:
            return {member.name: member for member in opened}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PRODUCT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def built(wheel: Path) -> Built:
    return Built(*krew.build(wheel, krew.requirements(), URI))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of links to programs, after what Krew does with an archive. The plugin needs no package of an index
    here: those that are installed are on the path of its Python."""
    made = Built(*krew.build(wheel, b"", URI))
    home = tmp_path_factory.mktemp("krew")
    store, programs = home / "store" / "numalign" / made.manifest["spec"]["version"], home / "bin"
    store.mkdir(parents=True)
    programs.mkdir()
    with tarfile.open(fileobj=io.BytesIO(made.archive)) as opened:
        opened.extractall(home / "unpacked", filter="data")
    for each in made.platform["files"]:
        shutil.copy2(home / "unpacked" / each["from"], store / each["to"])
    (programs / "kubectl-numalign").symlink_to(store / made.platform["bin"])
    (programs / "kubectl_complete-numalign").symlink_to(store / made.platform["bin"])
    return programs


def environment(installed: Path) -> Mapping[str, str]:
    return {
        "HOME": str(installed.parent),
        "PATH": f"{installed}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }


def ran(installed: Path, program: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [installed / program, *words],
        env={**environment(installed), **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=installed,
    )


def test_the_manifest_names_the_archive_and_every_file_in_it(built: Built) -> None:
    platform, files = built.platform, built.files()
    assert platform["sha256"] == hashlib.sha256(built.archive).hexdigest()
    assert platform["uri"] == URI
    assert {each["from"] for each in platform["files"]} == set(files)
    assert files[platform["bin"]].mode & 0o111
    assert built.manifest["spec"]["version"] == f"v{__version__}"
    assert re.fullmatch(r"[a-z0-9-]+", built.manifest["metadata"]["name"])
    assert len(built.manifest["spec"]["shortDescription"]) <= 50


def test_the_archive_is_the_same_every_time(built: Built, wheel: Path) -> None:
    assert krew.build(wheel, krew.requirements(), URI)[0] == built.archive


def test_every_package_that_is_needed_is_pinned_with_its_hashes() -> None:
    entries = re.split(r"\n(?=\S)", krew.requirements().decode().strip())
    assert {"msgspec", "typer", "starlette"} <= {entry.partition("==")[0] for entry in entries}
    assert all(PINNED.match(entry) and "--hash=sha256:" in entry for entry in entries)


def test_the_first_call_installs_and_later_ones_only_run(installed: Path) -> None:
    first = ran(installed, "kubectl-numalign", "version", "--client")
    assert first.returncode == 0, first.stderr
    assert f"numalign {__version__}" in first.stdout
    assert "the first call installs what the command needs" in first.stderr
    again = ran(installed, "kubectl-numalign", "--help")
    assert (again.returncode, again.stderr) == (0, "")
    assert "Usage: kubectl numalign" in again.stdout


def test_completions_come_from_the_same_program(installed: Path) -> None:
    assert "topology" in ran(installed, "kubectl_complete-numalign", "topo").stdout.splitlines()


def test_code_of_the_current_folder_is_not_run(installed: Path) -> None:
    (installed / "numalign.py").write_text("raise SystemExit('not ours')")
    try:
        assert ran(installed, "kubectl-numalign", "version", "--client").returncode == 0
    finally:
        (installed / "numalign.py").unlink()


def test_a_cache_that_cannot_be_written_is_one_sentence(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed = ran(installed, "kubectl-numalign", "version", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert failed.returncode == 2
    assert "set XDG_CACHE_HOME to a folder that can be written" in failed.stderr
    assert "Traceback" not in failed.stderr
