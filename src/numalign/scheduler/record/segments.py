"""The files of a recording: a folder of segments, each complete in itself.

A segment is JSON lines in gzip. The first line is the head, the second the state of the scheduler at that moment (as
`numalign scheduler dump` writes it), and each further line is an entry. The writer appends whole gzip members, so a
crash loses at most the last one: the reader ends at a member that is not complete. The recorder writes segments, and
`playback` and `numalign record` read, export and delete them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject

KIND: Final = "SchedulerRecording"
VERSION: Final = "numalign.io/v1alpha1"
SCHEMA: Final = 1
SUFFIX: Final = ".jsonl.gz"
NAMED: Final = "%Y%m%dT%H%M%S.%f"
"""When a segment begins, in the name of its file, which has milliseconds."""
FAST: Final = 1
"""The level of compression: lines of a recording resemble each other, and a higher level gains little."""
HEAD: Final = b'{"apiVersion":'
"""The beginning of a head. Entries begin with their tag."""
CHUNK: Final = 1 << 18
LONGEST: Final = 366 * 86400.0
"""Seconds of a segment; times of entries that are further away make no sense."""
LONGEST_LINE: Final = 256 << 20
"""Bytes of a line, and of a gzip member. The state of 50,000 nodes is less than half of it; whatever is longer is no
recording."""


class SegmentHead(Wire, frozen=True, omit_defaults=False):
    """The first line of a segment."""

    api_version: str = VERSION
    kind: str = KIND
    schema: int = SCHEMA
    program: str = ""
    """The version of numalign that wrote it."""
    begun: str = ""
    """Wall-clock time."""
    now: float = 0.0
    """The same on the scheduler's monotonic clock, which all entries use."""

    def wall(self, now: float) -> datetime:
        """A time of the scheduler's clock as wall-clock time."""
        return datetime.fromisoformat(self.begun) + timedelta(seconds=min(max(now - self.now, -LONGEST), LONGEST))


class SegmentFile(Struct, frozen=True):
    path: Path
    size: int
    written: datetime
    """When it was last written to."""


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def created(folder: Path, moment: datetime) -> tuple[Path, BinaryIO]:
    """A new segment, which only its owner may read. OSError if the folder cannot be written to."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = moment.strftime(NAMED)[:-3] + "Z"
    for number in range(1000):
        path = folder / f"{name}-{number:03}{SUFFIX}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        return path, os.fdopen(descriptor, "wb", buffering=0)
    raise FileExistsError(f"{folder} has 1,000 segments of {name}")


def begun(path: Path) -> datetime | None:
    """When the segment begins, by the name of its file. None: it has a name of another kind."""
    try:
        return datetime.strptime(path.name.partition("Z")[0], NAMED).replace(tzinfo=UTC)
    except ValueError:
        return None


def packed(lines: bytes) -> bytes:
    return gzip.compress(lines, compresslevel=FAST, mtime=0)


def head_line(head: SegmentHead) -> bytes:
    return msgspec.json.encode(head) + b"\n"


def listed(folder: Path) -> list[SegmentFile]:
    """The segments of a folder, the oldest first. A file counts as a folder with one segment."""
    paths = [folder] if folder.is_file() else sorted(folder.glob(f"*{SUFFIX}"))
    found = list[SegmentFile]()
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            # The recorder deleted it meanwhile.
            continue
        found.append(SegmentFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)))
    return found


def surplus(files: Iterable[SegmentFile], most_bytes: float, oldest: datetime | None) -> list[SegmentFile]:
    """The segments to delete so that the others have no more than so many bytes, and none ended before `oldest`."""
    kept, gone = 0, list[SegmentFile]()
    for each in sorted(files, key=lambda each: each.path.name, reverse=True):
        kept += each.size
        if kept > most_bytes or (oldest is not None and each.written < oldest):
            gone.append(each)
    return gone


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a segment, without the last one if it is not complete. BadObject if it is no segment at all."""
    begun, size = list[bytes](), 0
    for text in _unpacked(path):
        first, newline, rest = text.partition(b"\n")
        begun.append(first)
        size += len(first)
        if size > LONGEST_LINE:
            raise _too_long(path)
        if newline:
            yield b"".join(begun)
            *whole, last = rest.split(b"\n")
            yield from whole
            begun, size = [last], len(last)


def is_head(text: bytes) -> bool:
    """Whether a further segment begins with this line; an exported file has several."""
    return text.startswith(HEAD)


def head(text: bytes, path: Path) -> SegmentHead:
    """The head of a segment. BadObject if the line is none, or if a newer program wrote it."""
    try:
        found = msgspec.json.decode(text, type=SegmentHead)
        for now in (found.now - LONGEST, found.now + LONGEST):
            found.wall(now)
    except decode.UNREADABLE:
        found = SegmentHead(kind="")
    if found.kind != KIND or not found.begun:
        raise BadObject("File", str(path), "", "is not a recording; name a folder that `scheduler run --record` wrote")
    if found.schema > SCHEMA:
        raise BadObject("File", str(path), "schema", f"{found.schema} is newer than this program, which knows {SCHEMA}")
    return found


def _unpacked(path: Path) -> Iterator[bytes]:
    """The text in pieces, up to the last complete member: the process may have ended while it wrote the next one."""
    with path.open("rb") as file:
        unpacker, member, size = zlib.decompressobj(wbits=31), list[bytes](), 0
        while chunk := file.read(CHUNK):
            is_full = False
            while chunk or is_full:
                try:
                    text = unpacker.decompress(chunk, CHUNK)
                except zlib.error:
                    return
                member.append(text)
                size += len(text)
                if size > LONGEST_LINE:
                    # A few kilobytes can stand for gigabytes.
                    raise _too_long(path)
                if unpacker.eof:
                    yield b"".join(member)
                    chunk, is_full = unpacker.unused_data, False
                    unpacker, member, size = zlib.decompressobj(wbits=31), [], 0
                else:
                    chunk, is_full = unpacker.unconsumed_tail, len(text) == CHUNK


def _too_long(path: Path) -> BadObject:
    return BadObject("File", str(path), "", "is not a recording: a line is too long")
