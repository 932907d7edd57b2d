"""runc on simulated machines: asked for CPUs that do not exist, it is asked for everything else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from numalign.lab import build

RESOURCES = {
    "cpu": {"shares": 2, "cpus": "97-100", "mems": "1"},
    "memory": {"limit": 9223372036854771712},
    "hugepageLimits": [{"pageSize": "1GB", "limit": 1}],
    "unified": {"cpuset.cpus": "97-100", "memory.high": "1"},
}
LEFT = {"cpu": {"shares": 2}, "memory": {"limit": 9223372036854771712}, "unified": {"memory.high": "1"}}
GLOBAL = ("--root", "/run/update", "--log-format", "json")


@pytest.fixture
def runc(tmp_path: Path) -> Path:
    """A runc that writes down its arguments and its input."""
    script = tmp_path / "runc"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/args\ncat > {tmp_path}/input\nexit 7\n')
    script.chmod(0o755)
    return script


def run(runc: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    (made,) = build.build(build.chosen(["labrunc"]), lambda _: None)
    variables = {**os.environ, "LAB_RUNC": str(runc)}
    command = [str(made.path), *GLOBAL, *words]
    return subprocess.run(command, env=variables, input=stdin, capture_output=True, text=True, check=False)


def bundle(folder: Path, content: str) -> Path:
    (folder / "bundle").mkdir()
    (folder / "bundle" / "config.json").write_text(content)
    return folder / "bundle"


def test_a_container_is_created_without_what_the_machine_does_not_have(runc: Path, tmp_path: Path) -> None:
    config: dict[str, Any] = {"ociVersion": "1.2.0", "linux": {"resources": RESOURCES, "cgroupsPath": "/a"}}
    place = bundle(tmp_path, json.dumps(config))
    ran = run(runc, "create", "--bundle", str(place), "id")
    assert ran.returncode == 7
    assert (tmp_path / "args").read_text() == f"{' '.join(GLOBAL)} create --bundle {place} id\n"
    written = json.loads((place / "config.json").read_text())
    assert written == config | {"linux": {"resources": LEFT, "cgroupsPath": "/a"}}


def test_an_update_passes_on_what_remains(runc: Path, tmp_path: Path) -> None:
    run(runc, "update", "--resources", "-", "id", stdin=json.dumps(RESOURCES))
    assert json.loads((tmp_path / "input").read_text()) == LEFT


def test_other_calls_are_passed_on_as_they_are(runc: Path, tmp_path: Path) -> None:
    assert run(runc, "kill", "--all", "update", "9", stdin="untouched").returncode == 7
    assert (tmp_path / "input").read_text() == "untouched"


@pytest.mark.parametrize("content", ["", "[]", '{"linux"'])
def test_a_bundle_that_is_none_is_told_and_runc_not_called(runc: Path, tmp_path: Path, content: str) -> None:
    ran = run(runc, "create", "--bundle", str(bundle(tmp_path, content)), "id")
    assert (ran.returncode, "config.json" in ran.stderr) == (1, True)
    assert not (tmp_path / "args").exists()
