"""The past of a scheduler that records, as pages of the dashboard: a process of its own makes each page.

`cli.dashboards` gives a `RecordingPast` to the pages of a scheduler. To show a time, the recording is played up to it,
which takes seconds of processor time and much memory. Beside the event loop, even in a thread, that would hold up
scheduling. So each page starts a process, `pastpage`, with the lowest priority and a limit of memory, and one page is
made at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from numalign.dashboard.past import AskedPage, PastPage
from numalign.dashboard.source import SourceFailed
from numalign.process import interpreter

READER: Final = "numalign.cli.results.moments.pastpage"
PATIENCE: Final = 60.0
"""Seconds that a page may take."""
TURN: Final = 3.0
"""Seconds to wait for the page before: a reader who moves the slider again has just left it."""
ELSEWHERE: Final = (
    "Copy the recording with `numalign record export`, and show it with `numalign dashboard --recording` on another"
    " machine."
)
BUSY: Final = "Another page of the past is being made, and a scheduler makes one at a time. Try again in a moment."
SLOW: Final = f"Reading the recording takes more than {PATIENCE:.0f} seconds. {ELSEWHERE}"


class NoPage(Struct, frozen=True, tag=True):
    """Why there is no page, as a sentence."""

    text: str


class Made(Struct, frozen=True, tag=True):
    page: PastPage


Outcome = Made | NoPage


class RecordingPast:
    def __init__(self, folder: Path, origin: str) -> None:
        """`origin`: where the recording comes from, in words."""
        self._folder, self._origin = folder, origin
        self._turn = asyncio.Lock()

    async def page(self, asked: AskedPage) -> PastPage:
        try:
            async with asyncio.timeout(TURN):
                await self._turn.acquire()
        except TimeoutError:
            raise SourceFailed(BUSY) from None
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._made(asked)
        except TimeoutError:
            raise SourceFailed(SLOW) from None
        except (OSError, msgspec.MsgspecError) as problem:
            raise SourceFailed(f"The process that reads the recording failed: {problem}. {ELSEWHERE}") from None
        finally:
            self._turn.release()
        if isinstance(found, NoPage):
            raise SourceFailed(found.text)
        return found.page

    async def _made(self, asked: AskedPage) -> Outcome:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *interpreter.PYTHON, "-m", READER, str(self._folder), self._origin, stdin=pipe, stdout=pipe
        )
        try:
            written, _ = await process.communicate(msgspec.msgpack.encode(asked))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            return NoPage(f"The process that reads the recording ended with {process.returncode}. {ELSEWHERE}")
        # A page of 5,000 nodes is a megabyte, which takes a millisecond.
        found: Outcome = msgspec.msgpack.decode(written, type=Outcome)
        return found
