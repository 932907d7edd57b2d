"""Reads the files that a command is given, and writes those that it keeps.

`documents` reads YAML or JSON from a path or the standard input, of limited size, in UTF-8; errors are BadObject.
`require_file` and `require_folder` check before a long command starts that its result can be written. `show` prints a
log, and follows it as `tail -f` does."""

from __future__ import annotations

import errno
import sys
import time
from pathlib import Path
from typing import IO

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import yamltext
from numalign.api.decode.yamltext import Document
from numalign.cli import output

STDIN = "-"
LONGEST_PATH = 4096

MAX_BYTES = 8 << 20


def documents(path: str) -> list[Document]:
    """All documents of a file that are not empty; `-` is the standard input."""
    return yamltext.documents(text(path), shown(path))


def only(path: str) -> Document:
    """The one document of a file that must not have more."""
    found, name = documents(path), shown(path)
    if len(found) != 1:
        raise errors.BadObject("File", name, "", f"holds {len(found)} documents, and exactly one is wanted")
    return structs.replace(found[0], place=name)


def shown(*paths: str) -> str:
    """File names for messages; clipped only where no file can have such a name."""
    named = (path if len(path) <= LONGEST_PATH else errors.clipped(path) for path in paths)
    return ", ".join("standard input" if path == STDIN else path for path in named)


def text(path: str) -> str:
    """What a file holds; `-` is the standard input."""
    name = shown(path)
    try:
        raw = content(path, MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "not a file name"
        raise errors.BadObject("File", name, "", f"cannot be read: {why}") from None
    if len(raw) > MAX_BYTES:
        raise errors.BadObject("File", name, "", f"larger than {MAX_BYTES >> 20} MiB; split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        why = f"byte {problem.start} is not UTF-8 text; is this a YAML or JSON file?"
        raise errors.BadObject("File", name, "", why) from None


def content(path: str, most: int) -> bytes:
    """At most so many bytes: a device may never end. Raises OSError or ValueError, as `open` does."""
    if path == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "it is closed")
        return sys.stdin.buffer.read(most)
    with open(path, "rb") as file:
        return file.read(most)


def require_file(path: Path | None) -> None:
    """Ends the command if nothing can be written there."""
    if path is not None:
        try:
            path.open("ab").close()
        except OSError as problem:
            _refuse(path, problem)


def require_folder(path: Path | None) -> None:
    """Creates the folder if it is missing; ends the command if that fails."""
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


LOOK = 0.2
CHUNK = 1 << 16


def show(file: Path, *, follow: bool, while_there: Path) -> None:
    """Prints the file; with `follow`, also what is added while the folder exists."""
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
