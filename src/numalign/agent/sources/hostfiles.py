"""Reads small files of a node so that a missing or damaged one costs one value only.

`sysfs`, `checkpoints` and `kubeletconfig` read through it. A missing file is None without a problem, since machines
differ; a file that cannot be used is None with a problem as a sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from numalign.api import errors
from numalign.api.decode import cpuset

LARGEST: Final = 1 << 16
"""Bytes; files of sysfs are at most a memory page long."""
NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
NAME: Final = re.compile(r"([a-z]+)(0|[1-9][0-9]{0,4})")
MOST_PROBLEMS: Final = 100


class Unreadable(Exception):
    """The file may exist but cannot be read; the text says why."""


def content(path: Path, largest: int = LARGEST) -> bytes | None:
    """None where the file does not exist."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            # None: a pipe or device without data.
            raw = file.read(largest + 1) or b""
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as problem:
        raise Unreadable(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}") from None
    if len(raw) > largest:
        raise Unreadable(f"{path} is longer than {largest} bytes")
    return raw


def written(path: Path) -> int:
    """When its content last changed, in nanoseconds since 1970; 0 where the file does not exist."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _without_waiting(path: str, flags: int) -> int:
    """Opens without blocking: a pipe in place of a file would block for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


class Files:
    """Files below one folder, by relative path; collects `problems`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[str] = []

    def note(self, path: str, why: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(f"{self.root / path}: {why}")

    def text(self, path: str) -> str | None:
        try:
            raw = content(self.root / path)
        except Unreadable as problem:
            if len(self.problems) < MOST_PROBLEMS:
                self.problems.append(str(problem))
            return None
        return None if raw is None else raw.decode("utf-8", "replace").strip()

    def number(self, path: str) -> int | None:
        text = self.text(path)
        if text is None:
            return None
        if NUMBER.fullmatch(text) is None:
            self.note(path, f"{errors.echo(text)} is not a whole number")
            return None
        return int(text)

    def members(self, path: str) -> int | None:
        """A set of CPUs or zones in the kernel's list format, such as 0-3,8."""
        text = self.text(path)
        try:
            return None if text is None else cpuset.parse(text)
        except cpuset.CPUSetError as problem:
            self.note(path, str(problem))
            return None

    def names(self, folder: str) -> list[str]:
        """The entries of a folder, sorted; empty where it does not exist."""
        try:
            return sorted(os.listdir(self.root / folder))
        except FileNotFoundError:
            return []
        except OSError as problem:
            self.note(folder, problem.strerror or str(problem))
            return []

    def processes(self) -> list[int]:
        """The ids of all visible processes of a /proc."""
        return sorted(int(name) for name in self.names("") if name.isascii() and name.isdigit() and len(name) < 10)

    def numbered(self, folder: str, prefix: str) -> list[int]:
        """The numbers of entries with a prefix: 0 and 12 of node0 and node12."""
        found = (NAME.fullmatch(name) for name in self.names(folder))
        numbers = (int(match[2]) for match in found if match and match[1] == prefix)
        return sorted(number for number in numbers if number <= cpuset.MAX_CPU)
