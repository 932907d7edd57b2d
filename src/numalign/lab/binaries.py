"""Builds the lab's binaries into a cache, once per content of their Go modules.

The key of a binary covers all inputs: the module's files, those of local modules that it replaces, the Go version and
the link flags. A cached binary is not built again."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import toolchain
from numalign.lab.catalogue import Binary
from numalign.lab.errors import LabError

LOCAL_REPLACE: Final = re.compile(r"=>\s+(\.\.?/\S+)")
MODULE_AT: Final = re.compile(r"([a-z0-9.-]+\.[a-z]+/\S+?)@(v[0-9]\S*?):")
UNREACHABLE: Final = ("dial tcp", "no such host", "connection refused", "timeout", "410 Gone", "404 Not Found")


class Built(Struct, frozen=True):
    """A binary in the cache, and whether this call built it."""

    binary: Binary
    path: Path
    fresh: bool


def cache_folder() -> Path:
    explicit = os.environ.get("LAB_CACHE")
    if explicit:
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numalign" / "lab"


def locate(binary: Binary, go_version: str) -> Path:
    """The path of this binary in the cache, built or not."""
    return cache_folder() / f"{binary.name}-{key(binary, go_version)}" / binary.name


def key(binary: Binary, go_version: str) -> str:
    digest = hashlib.sha256()
    for part in (go_version, binary.package, binary.link_flags()):
        digest.update(part.encode() + b"\0")
    for folder in _module_folders(binary.folder):
        for file in _sources(folder):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build(binaries: Iterable[Binary], announce: Callable[[Binary], None]) -> Iterator[Built]:
    """Every binary, built if it is missing. `announce` is called before each build."""
    command = toolchain.go()
    version = toolchain.version_text(command)
    for binary in binaries:
        path = locate(binary, version)
        fresh = not path.exists()
        if fresh:
            # Before the lock: the wait is the same if another process builds it.
            announce(binary)
            with _alone(cache_folder() / f"{path.parent.name}.lock"):
                # Another process may have built it while this one waited.
                fresh = not path.exists()
                if fresh:
                    _compile(command, binary, path)
        yield Built(binary, path, fresh)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Excludes other builds of the same binary: a build takes minutes and all cores."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _compile(command: Path, binary: Binary, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Built in a temporary folder and moved, so that an interrupted build never looks finished.
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / binary.name
        arguments = ["build", "-trimpath", "-ldflags", binary.link_flags(), "-o", str(made), binary.package]
        ran = subprocess.run(
            [command, *arguments],
            cwd=binary.folder,
            env=toolchain.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise LabError(_explained(binary, ran.stderr))
        made.replace(path)


def _explained(binary: Binary, output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = "; ".join(lines[-8:])
    module = MODULE_AT.search(output)
    if module and any(sign in output for sign in UNREACHABLE):
        return (
            f"{binary.name}: module {module[1]} {module[2]} could not be downloaded; check that the Go module proxy "
            f"(go env GOPROXY) can be reached, then run the same command again: {last}"
        )
    return f"{binary.name}: go build failed in {binary.folder}: {last}"


def _module_folders(folder: Path) -> list[Path]:
    modfile = folder / "go.mod"
    if not modfile.exists():
        raise LabError(f"{folder} has no go.mod; reinstall numalign-devkit")
    replaced = [(folder / local).resolve() for local in LOCAL_REPLACE.findall(modfile.read_text())]
    return [folder, *(each for each in replaced if each.is_dir())]


def _sources(folder: Path) -> list[Path]:
    """The files that determine a binary, without tests."""
    listed = (file for file in folder.rglob("*") if file.suffix in (".go", ".mod", ".sum"))
    return sorted(file for file in listed if not file.name.endswith("_test.go"))
