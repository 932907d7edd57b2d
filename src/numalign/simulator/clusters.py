"""Embedded clusters that run in the background: a folder each, with what their owner needs to find and to end them.

`hosting` holds a cluster's folder while it runs, `numalign cluster` looks into them. Whether a cluster runs is told by
the lock on its folder, which the system lets go when the process ends however it ends; a process id alone may be
somebody else's by now."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from numalign.api import errors

NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
KIND: Final = "Cluster"
PATIENCE: Final = 15.0
"""Seconds that a cluster gets to end by itself."""
LOOK: Final = 0.05


class Running(Struct, frozen=True):
    """What a cluster tells about itself once it is up."""

    name: str
    pid: int
    url: str
    kubeconfig: str
    nodes: int
    words: str
    """What it is, for people."""


class AlreadyRuns(errors.BadObject):
    """Another process holds this cluster's folder."""


def home() -> Path:
    """Where the folders are: NUMALIGN_CLUSTERS, or the user's state folder."""
    named = os.environ.get("NUMALIGN_CLUSTERS")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(named) if named else Path(state, "numalign", "clusters")


def folder(name: str) -> Path:
    if not NAME.fullmatch(name):
        why = "is no name; use small letters, digits and dashes, 63 at most"
        raise errors.BadObject(KIND, errors.clipped(name), "name", why)
    return home() / name


@contextmanager
def held(name: str) -> Iterator[Path]:
    """The cluster's folder, ours until the block is left; AlreadyRuns if it is somebody else's."""
    place = folder(name)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(place / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRuns(KIND, name, "", f"runs already; `numalign cluster down {name}` ends it") from None
        try:
            yield place
        finally:
            (place / "cluster.json").unlink(missing_ok=True)


def announce(place: Path, running: Running) -> None:
    """Visible at once and whole."""
    written = place / "cluster.json.new"
    written.write_bytes(msgspec.json.encode(running))
    written.rename(place / "cluster.json")


def running(name: str) -> Running | None:
    """What the cluster of this name says of itself, if it runs."""
    place = folder(name)
    if not _is_held(place):
        return None
    try:
        return msgspec.json.decode((place / "cluster.json").read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return None


def every() -> list[Running]:
    places = sorted(home().iterdir()) if home().is_dir() else []
    found = (running(place.name) for place in places if NAME.fullmatch(place.name))
    return [each for each in found if each is not None]


def end(name: str) -> bool:
    """Ask it to end, and end it if it does not; False where none of this name runs."""
    there = running(name)
    if there is None:
        return False
    for what in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(there.pid, what)
        except ProcessLookupError:
            return True
        if _gone(folder(name), PATIENCE):
            return True
    raise errors.BadObject(KIND, name, "", f"process {there.pid} does not end; end it by hand")


def _gone(place: Path, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while _is_held(place):
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    return True


def _is_held(place: Path) -> bool:
    try:
        with open(place / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
