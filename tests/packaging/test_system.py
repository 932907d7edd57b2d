"""`make system` installs what is missing, asks for nothing else, and `make test` calls it in a pipeline only."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = """\
[image]
buildah = builds
shared = both
[containers]
runc = runs
shared = both
"""
DPKG = 'shift 3; for name in "$@"; do case " $THERE " in *" $name "*) printf "%s\\tinstall ok installed\\n" $name;;'
DPKG += ' *) printf "%s\\tdeinstall ok config-files\\n" $name;; esac; done; exit 1'


class Machine:
    """A copy of the script beside a list of its own, on a machine whose apt-get and dpkg-query only write down."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        for name in ("tools", "requirements", "bin"):
            (folder / name).mkdir()
        shutil.copy(ROOT / "tools/system.py", folder / "tools")
        (folder / "requirements/debian.ini").write_text(LISTED)
        self.program("dpkg-query", DPKG)
        self.program("apt-get", f'echo "$@" >> {self.calls}; [ -z "$BROKEN" ]')

    def program(self, name: str, does: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)

    def run(self, *purposes: str, there: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(self.folder / "tools/system.py"), *purposes]
        variables = {"PATH": str(self.folder / "bin"), "THERE": there, **environment}
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    def installed(self) -> list[list[str]]:
        """What apt-get was asked for, without its options."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [[word for word in line.split() if not re.search("^-|::", word)] for line in lines]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the script asks for it")


@root
def test_what_is_missing_is_installed_after_an_update(machine: Machine) -> None:
    ran = machine.run(there="runc")
    assert (ran.returncode, machine.installed()) == (0, [["update"], ["install", "buildah", "shared"]]), ran.stderr


@root
def test_a_purpose_limits_what_is_installed(machine: Machine) -> None:
    assert machine.run("containers").returncode == 0
    assert machine.installed() == [["update"], ["install", "runc", "shared"]]


@root
@pytest.mark.parametrize("pipeline", ["", "true"])
def test_an_installation_that_fails_is_a_failure_everywhere(machine: Machine, pipeline: str) -> None:
    ran = machine.run(CI=pipeline, BROKEN="yes")
    assert (ran.returncode, machine.installed()) == (1, [["update"]])
    assert "update` failed with exit code 1" in ran.stderr


def test_where_all_is_there_nothing_is_asked_for(machine: Machine) -> None:
    ran = machine.run(there="buildah runc shared", CI="true")
    assert (ran.returncode, ran.stdout) == (0, "system: 3 Debian packages are installed\n")
    assert machine.installed() == []


@pytest.mark.parametrize("pipeline, code", [("", 0), ("true", 1)])
def test_a_machine_without_apt_is_told_what_is_missing(machine: Machine, pipeline: str, code: int) -> None:
    (machine.folder / "bin/apt-get").unlink()
    ran = machine.run(there="runc", CI=pipeline)
    assert ran.returncode == code
    assert ran.stderr == "system: buildah shared not installed: this machine has no apt-get\n"


def test_a_purpose_that_is_not_listed_is_refused_with_those_that_are(machine: Machine) -> None:
    ran = machine.run("browser")
    assert ran.returncode == 1
    assert ran.stderr == "system: no purpose browser in debian.ini: choose of image, containers\n"


def plan(**environment: str) -> str:
    """What `make test` would run."""
    ours = {"CI", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    variables = {name: value for name, value in os.environ.items() if name not in ours} | environment
    made = subprocess.run(["make", "-n", "test"], cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    return made.stdout


def test_only_a_pipeline_installs_packages_by_make_test() -> None:
    assert "tools/system.py" not in plan()
    before, _, after = plan(CI="true").partition("tools/system.py")
    assert ("pytest" in before, "pytest" in after) == (False, True)
