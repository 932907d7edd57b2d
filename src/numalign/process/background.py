"""Named background processes: one folder each, with what the command line needs to find and stop them.

Embedded clusters and labs each have a `Instances`. A process locks its folder while it runs, and the operating system
releases the lock when the process ends. A process id alone never decides whether it runs: ids are reused."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from numalign.api import errors

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
PATIENCE: Final = 15.0
"""Seconds that a process gets to exit after SIGTERM."""
LOOK: Final = 0.05
ROOT: Final = 0


class Announcement(Protocol):
    """What a running instance writes into its folder: at least its process id."""

    @property
    def pid(self) -> int: ...


T = TypeVar("T", bound=Announcement)


class AlreadyRuns(errors.BadObject):
    """Another process holds this folder."""


@dataclass(frozen=True)
class Instances(Generic[T]):
    """All instances of one kind. `place` is their folder in the user's state directory; `variable` is the environment
    variable that names another one."""

    kind: str
    command: str
    variable: str
    place: str
    content: type[T]

    @property
    def file(self) -> str:
        return f"{self.kind.lower()}.json"

    def home(self) -> Path:
        named = os.environ.get(self.variable)
        if named:
            return Path(named)
        try:
            state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        except RuntimeError:
            # A user without an entry in the password file, and without HOME.
            raise self._unusable("home", "there is no home directory") from None
        return Path(state, "numalign", self.place)

    def _unusable(self, folder: str, why: str) -> errors.BadObject:
        return errors.BadObject(
            self.kind, folder, "folder", f"{why}; set {self.variable} to a folder that you can write to"
        )

    def folder(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            why = "is not a valid name; use lower-case letters, digits and dashes, at most 63"
            raise errors.BadObject(self.kind, errors.clipped(name), "name", why)
        return self.home() / name

    def prepared(self, name: str) -> Path:
        """The folder of this name, made if it is missing; BadObject if another user can change it."""
        place = self.folder(name)
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            writable = os.access(place, os.W_OK | os.X_OK)
        except OSError as refusal:
            raise self._unusable(name, f"{place} cannot be made: {refusal.strerror}") from None
        if not writable:
            raise self._unusable(name, f"{place} cannot be written to")
        for folder in (place.parent, place):
            problem = _why_unsafe(folder)
            if problem:
                why = f"{folder} {problem}; remove it, or name another place with {self.variable}"
                raise errors.BadObject(self.kind, name, "folder", why)
        return place

    @contextmanager
    def held(self, name: str) -> Iterator[Path]:
        """Locks the folder until the block is left; AlreadyRuns if another process holds it."""
        place = self.prepared(name)
        with open(place / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self.already_runs(name) from None
            try:
                yield place
            finally:
                (place / self.file).unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """Removes the folder of an instance that does not run: its files may hold keys and tokens."""
        with self.held(name) as place:
            shutil.rmtree(place)

    def already_runs(self, name: str) -> AlreadyRuns:
        return AlreadyRuns(self.kind, name, "", f"already runs; `{self.command} down {name}` ends it")

    def announce(self, place: Path, content: T) -> None:
        """Writes the file atomically."""
        written = place / f"{self.file}.new"
        written.write_bytes(msgspec.json.encode(content))
        written.rename(place / self.file)

    def running(self, name: str) -> T | None:
        """What the instance of this name announced, if it runs."""
        return self.last_announced(name) if is_held(self.folder(name)) else None

    def last_announced(self, name: str) -> T | None:
        """The last announcement, whether the process still runs or not."""
        try:
            return msgspec.json.decode((self.folder(name) / self.file).read_bytes(), type=self.content)
        except (OSError, msgspec.DecodeError):
            return None

    def every(self) -> list[T]:
        found = (self.running(name) for name in self.names())
        return [each for each in found if each is not None]

    def names(self) -> list[str]:
        """Names of all folders, including those of processes that died."""
        home = self.home()
        try:
            places = sorted(home.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as problem:
            raise self._unusable(str(home), f"cannot be read: {problem.strerror}") from None
        return [place.name for place in places if NAME.fullmatch(place.name) and place.is_dir()]

    def end(self, name: str) -> bool:
        """Sends SIGTERM, then SIGKILL; False where no instance of this name runs."""
        there = self.running(name)
        if there is None:
            return False
        with _watched(there.pid) as exited:
            for what in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.kill(there.pid, what)
                except ProcessLookupError:
                    return True
                # The lock is free a moment before the process has ended.
                if _gone(self.folder(name), PATIENCE) and exited(PATIENCE):
                    return True
        raise errors.BadObject(self.kind, name, "", f"process {there.pid} does not exit; kill it by hand")


def _why_unsafe(folder: Path) -> str:
    """Why another user could put files of his own there; empty: none could."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "is not a folder"
    if found.st_uid not in (os.geteuid(), ROOT):
        return "belongs to another user"
    # In a folder like /tmp others may add entries, and change none of ours.
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        return "is a folder that others can write to"
    return ""


def is_held(place: Path) -> bool:
    try:
        with open(place / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True


@contextmanager
def _watched(pid: int) -> Iterator[Callable[[float], bool]]:
    """A function that waits for the end of a process, at most for some seconds, and says whether it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except (OSError, AttributeError):
        # The process is gone already, or the system has no such descriptors.
        yield lambda seconds: True
        return
    try:
        yield lambda seconds: bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def _gone(place: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while is_held(place):
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    return True
