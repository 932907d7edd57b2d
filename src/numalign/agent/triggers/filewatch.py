"""Which of the files that we look at were touched: told by the kernel where it can, found by looking where not.

`triggers` holds one `Watch` for all its files and is called back, with the reason that belongs to a file, whenever one
appears, is replaced, is written or goes. Folders may be missing, come later, or be replaced as a whole: those that the
kernel does not watch are looked at again in every `look`, which also is all there is without inotify."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from numalign.agent.triggers import inotify
from numalign.agent.triggers.inotify import Event, Inotify

LOG: Final = logging.getLogger(__name__)


class Signature(NamedTuple):
    """What tells a file from another in its place."""

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
            LOG.warning("no inotify (%s): the kubelet's files are looked at every second instead", problem)
            return
        asyncio.get_running_loop().add_reader(self._inotify.fd, self._told)
        self._cover()

    @property
    def covered(self) -> bool:
        """Whether the kernel tells of every file, so that nobody has to look."""
        return set(self._folders.values()) == {path.parent for path in self._files}

    def look(self) -> None:
        """At the files whose folders the kernel does not watch, and for such folders, whether it can now."""
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
                LOG.debug("%s is not watched: %s", folder, problem)

    def _told(self) -> None:
        for event in self._inotify.read() if self._inotify else ():
            self._take(event)

    def _take(self, event: Event) -> None:
        if event.flags & inotify.OVERFLOW:
            # Nobody knows what was lost: every file may have changed.
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
        """A folder that was renamed is watched under its new name; what counts is the old one."""
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
    """None: not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return Signature(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
