"""Writes the tape of a running scheduler into the segments of a folder, and deletes the oldest ones.

`http.serving` runs it beside the scheduler while that leads. Each segment begins with the state of the scheduler, so
that older segments can be deleted. The scheduler waits for nothing: a thread compresses and writes once a second. If
the disk fails or is too slow, the segment ends, a warning says so, and another segment begins later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from numalign import __version__
from numalign.kube.clock import Clock
from numalign.scheduler.record import segments
from numalign.scheduler.record.segments import SegmentHead
from numalign.scheduler.record.taps import Tape

LOG: Final = logging.getLogger(__name__)
FLUSH: Final = 1.0
"""Seconds between two writes; a process that is killed loses the entries since the last one."""
RETRY: Final = 60.0
"""Seconds after a failure until another segment begins."""
PARTS: Final = 8
"""A segment ends when it has this part of the size or age that the recording may have."""


class RecordingLimits(Struct, frozen=True, kw_only=True):
    size: int = 256 << 20
    """Bytes of all segments."""
    age: float = 86400.0
    """Seconds. Segments that ended earlier are deleted."""


DEFAULTS: Final = RecordingLimits()
OffLoop = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs a function that blocks: in a thread, or at once where time is virtual."""


class Recorder:
    def __init__(
        self,
        tape: Tape,
        folder: Path,
        state: Callable[[], Iterable[bytes]],
        clock: Clock,
        limits: RecordingLimits = DEFAULTS,
        off_loop: OffLoop = asyncio.to_thread,
    ) -> None:
        """`state`: takes the state of the scheduler at once, and returns its JSON in pieces."""
        self._tape, self._folder, self._state, self._clock = tape, folder, state, clock
        self._limits, self._off_loop = limits, off_loop
        self._file: BinaryIO | None = None
        self._path, self._is_gone = folder, False
        self._size, self._begun = 0, 0.0

    async def run(self) -> None:
        """Records until cancelled."""
        try:
            while True:
                try:
                    await self._recorded()
                except OSError as problem:
                    LOG.warning(
                        "Recording paused for %d s: %s. Check the folder of --record and its free space.",
                        RETRY,
                        problem,
                    )
                self._end()
                await self._clock.sleep(RETRY)
        finally:
            self._finish()

    async def _recorded(self) -> None:
        """Records until the disk fails, or until entries are given up."""
        await self._begin()
        while self._tape.is_on:
            await self._clock.sleep(FLUSH)
            text = self._tape.take()
            if text:
                await self._off_loop(partial(self._write, text))
            if self._is_full() or self._is_gone:
                self._end()
                await self._begin()
        LOG.warning("Recording paused for %d s: %s; %d entries lost.", RETRY, self._tape.problem, self._tape.lost)

    async def _begin(self) -> None:
        wall, self._begun = self._clock.wall(), self._clock.now()
        head = SegmentHead(program=__version__, begun=segments.stamp(wall), now=self._begun)
        # Nothing is awaited between the state and the first entry.
        state = self._state()
        self._tape.take()
        self._tape.is_on = True

        def write() -> None:
            self._path, self._file = segments.created(self._folder, wall)
            self._size, self._is_gone = 0, False
            self._append(segments.head_line(head) + b"".join(state) + b"\n")
            spare = self._limits.size - self._limits.size // PARTS
            others = [each for each in segments.listed(self._folder) if each.path != self._path]
            for each in segments.surplus(others, spare, wall - timedelta(seconds=self._limits.age)):
                each.path.unlink(missing_ok=True)

        await self._off_loop(write)

    def _write(self, text: bytes) -> None:
        self._append(text)
        # `record trim`, or a user, may delete the segment that is being written.
        self._is_gone = not self._path.exists()

    def _append(self, text: bytes) -> None:
        if self._file is not None:
            block = memoryview(segments.packed(text))
            while block:
                written = self._file.write(block)
                self._size += written
                block = block[written:]

    def _is_full(self) -> bool:
        age = self._clock.now() - self._begun
        return self._size >= self._limits.size // PARTS or age >= self._limits.age / PARTS

    def _end(self) -> None:
        self._tape.is_on = False
        if self._file is not None:
            self._file.close()
            self._file = None

    def _finish(self) -> None:
        """Writes what is left, when the process ends."""
        try:
            self._append(self._tape.take())
        except OSError as problem:
            LOG.warning("The last second was not recorded: %s", problem)
        self._end()
