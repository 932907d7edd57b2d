"""The kernel's word that something in a folder changed: the four calls of inotify, by ctypes.

`watching` is the only user. Folders are watched and never files: what matters here is renamed into place, which ends
the watch of a file and not that of its folder (D-15). `OSError` where the system has no inotify or no more of it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

CREATED, MOVED_TO, CLOSED_AFTER_WRITE, DELETED = 0x100, 0x80, 0x8, 0x200
TOUCHED: Final = 0x4
"""Its times or rights were changed, which is how some ask for a look (exporter spec 4.8)."""
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
        """The folder is not watched any more, whatever comes to be at its place."""
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
        """The number that events of this folder carry."""
        return self._checked(self._add(self.fd, os.fsencode(folder), WANTED))

    def remove(self, watch: int) -> None:
        self._remove(self.fd, watch)

    def read(self) -> list[Event]:
        """What came since the last call; nothing where nothing did."""
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
