"""Files into plain values: YAML or JSON documents, each with the place where it stands.

`inputs` and `podfiles` read everything through `documents`. Reading the text is `api.yamltext`; here are the files: a
path or the standard input, of limited size, in UTF-8. Whatever is wrong comes out as a BadObject.

What a command keeps for later in files of the user's choice: the history of a campaign or a scenario, and logs.

Commands ask before they begin whether there is a place to write, so that nobody finds out after an hour.

Showing a log, and what is added to it: `tail -f` for `numalign lab logs`.
"""

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
    name = shown(path)
    return yamltext.documents(_text(path, name), name)


def only(path: str) -> Document:
    """The one document of a file that must not have more."""
    found, name = documents(path), shown(path)
    if len(found) != 1:
        raise errors.BadObject("File", name, "", f"holds {len(found)} documents, and exactly one is wanted")
    return structs.replace(found[0], place=name)


def shown(*paths: str) -> str:
    """File names as messages give them: whole, so that they can be found again, unless no file can have such a name."""
    named = (path if len(path) <= LONGEST_PATH else errors.clipped(path) for path in paths)
    return ", ".join("standard input" if path == STDIN else path for path in named)


def _text(path: str, name: str) -> str:
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
    """At most so many bytes, whatever the file is: a device may never end. OSError or ValueError as `open` has them."""
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
