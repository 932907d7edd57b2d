"""Showing a log, and what is added to it: `tail -f` for `numalign lab logs`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import IO

from numalign.cli import output

LOOK = 0.2
CHUNK = 1 << 16


def show(file: Path, *, follow: bool, while_there: Path) -> None:
    """All of it; then, if asked, what comes, as long as the folder is there."""
    try:
        with open(file, "rb") as opened:
            _carry(opened)
            while follow and while_there.exists():
                time.sleep(LOOK)
                _carry(opened)
    except OSError as problem:
        output.fail(f"{file} cannot be read: {problem.strerror}", code=1)


def _carry(opened: IO[bytes]) -> None:
    while chunk := opened.read(CHUNK):
        sys.stdout.buffer.write(chunk)
    sys.stdout.flush()
