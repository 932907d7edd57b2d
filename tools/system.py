"""Installs the Debian packages of requirements/debian.ini that the machine lacks, with apt-get.

`make system` runs it, and so does `make test` where CI=true; nothing else installs packages on a machine. PURPOSES
limits it to some sections. It uses the standard library alone, because it runs before `.venv` exists. If nothing is
missing it needs neither root nor network. Where it cannot install, it says what is missing and succeeds, because tests
that need the package are then skipped; where CI=true it fails."""

import configparser
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).parents[1] / "requirements/debian.ini"
INSTALLED: Final = "install ok installed"
# Another installation may hold the lock for a while.
APT: Final = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=600", "-o", "Dpkg::Use-Pty=0")
INSTALL: Final = (*APT, "install", "--yes", "--no-install-recommends")


def wanted(file: Path, purposes: Sequence[str]) -> list[str]:
    """The packages for these purposes, or for all if none is named."""
    read = configparser.ConfigParser(delimiters=("=",))
    read.read_string(file.read_text())
    unknown = sorted(set(purposes) - set(read.sections()))
    if unknown:
        sys.exit(f"system: no purpose {', '.join(unknown)} in {file.name}: choose of {', '.join(read.sections())}")
    return sorted({name for purpose in purposes or read.sections() for name in read.options(purpose)})


def missing(packages: Sequence[str]) -> list[str]:
    """Those that dpkg does not have completely."""
    query = ("dpkg-query", "--show", "--showformat", "${Package}\t${Status}\n", *packages)
    lines = subprocess.run(query, capture_output=True, text=True, check=False).stdout.splitlines()
    there = {name for name, _, status in (line.partition("\t") for line in lines) if status == INSTALLED}
    return [name for name in packages if name not in there]


def obstacle() -> str:
    """Why packages cannot be installed here; empty: they can."""
    if shutil.which("apt-get") is None:
        return "this machine has no apt-get"
    return "" if os.geteuid() == 0 else "only root can install packages: run `sudo make system`"


def main(purposes: Sequence[str]) -> int:
    packages = wanted(PACKAGES, purposes)
    absent = missing(packages) if shutil.which("dpkg-query") else packages
    if not absent:
        print(f"system: {len(packages)} Debian packages are installed")
        return 0
    problem = obstacle()
    if problem:
        print(f"system: {' '.join(absent)} not installed: {problem}", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    print(f"system: apt-get installs {' '.join(absent)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ((*APT, "update"), (*INSTALL, *absent)):
        code = subprocess.run(command, env=environment, check=False, stdin=subprocess.DEVNULL).returncode
        if code:
            print(f"system: `{' '.join(command)}` failed with exit code {code}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
