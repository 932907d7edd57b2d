"""What the last look found, so that the next one need not read again what did not change.

`readings` keeps hardware and configuration for a while, and each checkpoint as long as its bytes are the same:
comparing them is cheap, verifying a checksum is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from msgspec import Struct

from numalign.agent.sources import checkpoints, hostfiles
from numalign.agent.sources.checkpoints import CPUCheckpoint, DeviceCheckpoint, MemoryCheckpoint
from numalign.api import errors

T = TypeVar("T")
PATIENCE: Final = 60.0
"""Seconds after which a checkpoint that cannot be read any more is done without: a kubelet of another version may write
it in a form of its own."""


class Remembered(Generic[T]):
    """One value, good for some seconds; `last` is what it was, good or not."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self.last: T | None = None

    def get(self, now: float) -> T | None:
        return self.last if now < self._until else None

    def keep(self, value: T, now: float) -> T:
        self.last, self._until = value, now + self._seconds
        return value

    def forget(self) -> None:
        """It may have changed."""
        self._until = 0.0


class _File(Generic[T]):
    """One checkpoint: its bytes as last seen, and what they say."""

    def __init__(self, path: Path, parse: Callable[[bytes], T]) -> None:
        self._path = path
        self._parse = parse
        self.seen: bytes | str | None = None
        self._good_until: float | None = None
        self.value: T | None = None
        self.problem = ""

    def look(self, now: float) -> bool:
        """Whether it is another than before."""
        if self.value is not None:
            self._good_until = now
        seen = self._content()
        if seen == self.seen:
            return False
        self.seen, self.value = seen, None
        self.problem = seen if isinstance(seen, str) else ""
        if isinstance(seen, bytes):
            self._read(seen)
        return True

    def is_lost(self, now: float) -> bool:
        """Whether there is something at its place that cannot be read, and could be a short while ago."""
        return bool(self.problem) and self._good_until is not None and now - self._good_until < PATIENCE

    def _content(self) -> bytes | str | None:
        """The bytes, or why there are none; nothing at all where there is no file."""
        try:
            return hostfiles.content(self._path, checkpoints.LARGEST)
        except hostfiles.Unreadable as problem:
            return str(problem)

    def _read(self, raw: bytes) -> None:
        try:
            self.value = self._parse(raw)
        except errors.BadObject as problem:
            self.problem = str(problem)


class Found(Struct, frozen=True):
    cpu: CPUCheckpoint | None
    memory: MemoryCheckpoint | None
    devices: DeviceCheckpoint | None


class Checkpoints:
    """The three of one kubelet."""

    def __init__(self, root: Path) -> None:
        self._cpu = _File(root / checkpoints.CPU, checkpoints.cpu)
        self._memory = _File(root / checkpoints.MEMORY, checkpoints.memory)
        self._devices = _File(root / checkpoints.DEVICES, checkpoints.devices)
        self._files: Final = (self._cpu, self._memory, self._devices)

    def look(self, now: float) -> bool:
        """Whether any is another than before."""
        changed = [file.look(now) for file in self._files]
        return any(changed)

    def lost(self, now: float) -> bool:
        return any(file.is_lost(now) for file in self._files)

    @property
    def devices(self) -> bytes | None:
        """The whole file, for comparing; None: there is none, or it cannot be read."""
        seen = self._devices.seen
        return seen if isinstance(seen, bytes) and self._devices.value is not None else None

    @property
    def found(self) -> Found:
        return Found(self._cpu.value, self._memory.value, self._devices.value)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(file.problem for file in self._files if file.problem)
