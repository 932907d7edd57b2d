"""Watches files for changes: by inotify where the kernel offers it, otherwise by comparing them.

`triggers` and `readings` hold a `Watch` and get the reason of each file that appears, is replaced, is written or is
deleted. Folders may be missing, appear later, or be replaced. Folders are watched, never files: the kubelet renames
files into place, which ends the watch of a file (D-15). Written by hand with ctypes: four calls, as small as
inotify_simple."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

CREATED, MOVED_TO, CLOSED_AFTER_WRITE, DELETED = 0x100, 0x80, 0x8, 0x200
TOUCHED: Final = 0x4
"""Its attributes changed, which is how some programs request a snapshot (exporter spec 4.8)."""
FOLDER_GONE: Final = 0x400 | 0x800
"""The folder itself was removed or renamed."""
IGNORED: Final = 0x8000
OVERFLOW: Final = 0x4000
ONLY_FOLDERS: Final = 0x01000000
WANTED: Final = CREATED | MOVED_TO | CLOSED_AFTER_WRITE | DELETED | TOUCHED | FOLDER_GONE | ONLY_FOLDERS

HEAD: Final = struct.Struct("iIII")
BUFFER: Final = 1 << 16


class Event(Struct, frozen=True):
    watch: int
    flags: int
    name: str

    @property
    def ended(self) -> bool:
        """The watch of the folder ended."""
        return bool(self.flags & (FOLDER_GONE | IGNORED))


class Inotify:
    """`fd` can be read when there are events; `close` at the end."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        try:
            self._init, self._add, self._remove = (
                getattr(library, f"inotify_{name}") for name in ("init1", "add_watch", "rm_watch")
            )
        except AttributeError:
            raise OSError(0, "this system has no inotify") from None
        self.fd = self._checked(self._init(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, folder: Path) -> int:
        """Returns the watch descriptor of the folder."""
        return self._checked(self._add(self.fd, os.fsencode(folder), WANTED))

    def remove(self, watch: int) -> None:
        self._remove(self.fd, watch)

    def read(self) -> list[Event]:
        """The events since the last call."""
        try:
            return list(parsed(os.read(self.fd, BUFFER)))
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self.fd)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


def parsed(raw: bytes) -> Iterator[Event]:
    place = 0
    while place + HEAD.size <= len(raw):
        watch, flags, _, length = HEAD.unpack_from(raw, place)
        place += HEAD.size
        yield Event(watch, flags, os.fsdecode(raw[place : place + length].split(b"\0", 1)[0]))
        place += length


LOG: Final = logging.getLogger(__name__)


class Signature(NamedTuple):
    """Identifies a version of a file."""

    device: int
    number: int
    written: int
    """In nanoseconds since 1970."""
    size: int


class Watch:
    """`files` to reasons. `open` inside a running event loop, `close` at the end."""

    def __init__(self, files: Mapping[Path, str], touched: Callable[[str], None]) -> None:
        self._files = files
        self._touched = touched
        self._folders: dict[int, Path] = {}
        self._inotify: Inotify | None = None
        self._seen: dict[Path, Signature | None] = {}

    def open(self) -> None:
        self._seen = {path: signature(path) for path in self._files}
        try:
            self._inotify = Inotify()
        except OSError as problem:
            LOG.warning("inotify is not available (%s); polling the kubelet's files every second", problem)
            return
        asyncio.get_running_loop().add_reader(self._inotify.fd, self._read_events)
        self._cover()

    @property
    def covered(self) -> bool:
        """Whether inotify covers every file, so that polling is not needed."""
        return set(self._folders.values()) == {path.parent for path in self._files}

    def look(self) -> None:
        """Polls files whose folders are not watched, and tries to watch these folders."""
        if self.covered:
            return
        watched = set(self._folders.values())
        self._cover()
        for path in self._files:
            if path.parent not in watched:
                self._compare(path)

    def close(self) -> None:
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fd)
            self._inotify.close()
            self._inotify = None
            self._folders = {}

    def _cover(self) -> None:
        for folder in {path.parent for path in self._files} - set(self._folders.values()):
            try:
                if self._inotify is not None:
                    self._folders[self._inotify.add(folder)] = folder
            except OSError as problem:
                LOG.debug("Failed to watch %s: %s", folder, problem)

    def _read_events(self) -> None:
        for event in self._inotify.read() if self._inotify else ():
            self._take(event)

    def _take(self, event: Event) -> None:
        if event.flags & OVERFLOW:
            # Events were lost: every file may have changed.
            for path in self._files:
                self._compare(path)
            return
        folder = self._folders.get(event.watch)
        if folder is None:
            return
        path = folder / event.name
        if path in self._files:
            self._seen[path] = signature(path)
            self._touched(self._files[path])
        if event.ended:
            self._forget(event.watch)

    def _forget(self, watch: int) -> None:
        """Ends the watch of a renamed folder: inotify follows the new name, the agent needs the old one."""
        folder = self._folders.pop(watch)
        if self._inotify is not None:
            self._inotify.remove(watch)
        for path in self._files:
            if path.parent == folder:
                self._compare(path)

    def _compare(self, path: Path) -> None:
        now = signature(path)
        if now != self._seen.get(path):
            self._seen[path] = now
            self._touched(self._files[path])


def signature(path: Path) -> Signature | None:
    """None: the file does not exist."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Signature(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
