"""What a command keeps for later in files of the user's choice: the history of a campaign or a scenario, and logs.

Commands ask before they begin whether there is a place to write, so that nobody finds out after an hour."""

from __future__ import annotations

from pathlib import Path

from numalign.cli import output


def require_file(path: Path | None) -> None:
    """Ends the command if nothing can be written there."""
    if path is not None:
        try:
            path.open("ab").close()
        except OSError as problem:
            _refuse(path, problem)


def require_folder(path: Path | None) -> None:
    """Makes it if need be; ends the command if it cannot be had."""
    if path is not None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            _refuse(path, problem)


def write(path: Path | None, content: bytes) -> None:
    if path is not None:
        try:
            path.write_bytes(content)
        except OSError as problem:
            _refuse(path, problem)


def _refuse(path: Path, problem: OSError) -> None:
    output.fail(f"{path} cannot be written: {problem.strerror}")
