"""Reads files of recordings and returns their JSON values, each with its place.

A file is plain or compressed with gzip or xz, detected by content. It holds one value per line, or one document that is
a case or a list of cases. A file that cannot be read raises a `BadObject` that names the file and the line."""

import gzip
import json
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.errors import BadObject
from numalign.oracle.harness import divergence

MAGIC: Mapping[bytes, Callable[[bytes], bytes]] = {b"\x1f\x8b": gzip.decompress, b"\xfd7zXZ\x00": lzma.decompress}
CORRUPT = (EOFError, OSError, lzma.LZMAError, zlib.error)
KIND = "Recording"


class RecordedValue(Struct, frozen=True):
    """One JSON value: its place in the file, the value, and its canonical form."""

    where: str
    value: Any
    recorded: bytes


def name(path: Path) -> str:
    """The path as printable text: a file name may contain any bytes."""
    return os.fsencode(path).decode(errors="replace")


def read(path: Path) -> bytes:
    """The file's content, decompressed."""
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise BadObject(KIND, name(path), "", f"{problem.strerror or problem}; name a file that can be read") from None
    decompress = next((known for magic, known in MAGIC.items() if raw.startswith(magic)), bytes)
    try:
        return decompress(raw)
    except CORRUPT as problem:
        raise BadObject(KIND, name(path), "", f"cannot be decompressed ({problem}); is it complete?") from None


def values(path: Path) -> Iterator[RecordedValue]:
    """All values of the file in order. Blank lines are skipped."""
    text = read(path)
    if not text.strip():
        raise BadObject(KIND, name(path), "", "is empty; give a file with recorded cases")
    if _is_whole(text):
        return _of_document(path, text)
    lines = enumerate(text.split(b"\n"), start=1)
    return (_found(f"{name(path)}, line {number}", line) for number, line in lines if line.strip())


def _is_whole(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except decode.UNREADABLE:
        return False
    return True


def _of_document(path: Path, text: bytes) -> Iterator[RecordedValue]:
    first_line = text[: len(text) - len(text.lstrip())].count(b"\n") + 1
    document = _found(f"{name(path)}, line {first_line}", text)
    if not isinstance(document.value, list):
        yield document
        return
    for number, value in enumerate(document.value, start=1):
        yield RecordedValue(f"{name(path)}, case {number}", value, divergence.canonical(value))


def _found(where: str, text: bytes) -> RecordedValue:
    try:
        value = msgspec.json.decode(text)
        recorded = divergence.canonical(value)
    except decode.UNREADABLE as problem:
        raise BadObject(KIND, where, "", f"{_why(problem)}; give one case per line, or one whole document") from None
    # The parser drops a repeated key, which may hide a wrong expectation.
    if text.count(b":") != recorded.count(b":"):
        json.loads(text, object_pairs_hook=lambda pairs: _single(pairs, where))
    return RecordedValue(where, value, recorded)


def _why(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "is nested too deeply"
    if isinstance(problem, UnicodeDecodeError):
        return "is neither JSON text nor compressed with gzip or xz"
    return f"is not JSON ({problem})"


def _single(pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    single = dict(pairs)
    if len(single) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadObject(KIND, where, errors.clipped(twice), "is there twice; only one of them can be meant")
    return single
