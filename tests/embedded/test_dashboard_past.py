"""The past of a scheduler that records: a process of its own makes each page, one at a time, within bounds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from numalign.cli.results.moments import past, pastpage
from numalign.cli.results.moments.past import RecordingPast
from numalign.cli.results.moments.sources import RecordedSource
from numalign.dashboard import rendering
from numalign.dashboard.past import AskedPage, PastPage
from numalign.dashboard.source import SourceFailed
from numalign.process import interpreter
from tests.embedded import clusters
from tests.embedded import schedulerhavoc as havoc
from tests.embedded.test_recording import recorded

__all__ = ["recorded"]

T = TypeVar("T")
ORIGIN = "recording of scheduler numalign"


def page(path: str, at: float) -> AskedPage:
    return AskedPage(f"/dashboard{path}", f"at={at:.3f}", "/dashboard", at, {"accept": "text/html"})


def made(folder: Path, path: str, at: float) -> PastPage:
    return asyncio.run(RecordingPast(folder, ORIGIN).page(page(path, at)))


def refused(asking: Callable[[], Coroutine[Any, Any, object]]) -> str:
    with pytest.raises(SourceFailed) as found:
        asyncio.run(asking())
    return str(found.value)


def test_pages_are_those_of_the_recording(recorded: Path) -> None:
    havoc.played(3)
    period = RecordedSource(recorded).period
    assert period is not None
    at = period.marks[len(period.marks) // 2] + 0.001
    moment = asyncio.run(RecordedSource(recorded).moment(at))
    fleet = made(recorded, "/fleet", at)
    assert (fleet.status, fleet.content_type) == (200, "text/html; charset=utf-8")
    text = fleet.body.decode()
    assert ORIGIN in text
    for node in moment.nodes:
        assert f"/dashboard/node/{node}?at={at:.3f}" in text
    decisions = made(recorded, "/decisions", at).body.decode()
    assert moment.decisions[0].key in decisions
    assert made(recorded, "/node/none", at).status == 404


def test_a_time_outside_is_the_nearest_inside(recorded: Path) -> None:
    havoc.played(3)
    period = RecordedSource(recorded).period
    assert period is not None
    for at in (0.0, rendering.LATEST):
        source = RecordedSource(recorded, ORIGIN, around=at)
        assert source.period is not None
        assert source.period.begin == pytest.approx(period.begin, abs=0.001)
        assert source.period.goes_on
        assert made(recorded, "/fleet", at).status == 200


def children() -> set[str]:
    """Processes of this one, those that ended and were not awaited included; others of its tests may be running."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may end meanwhile
            status = path.read_text()
            if int(status.rpartition(")")[2].split()[1]) == os.getpid():
                found.add(status.split()[0])
    return found


def test_while_one_page_is_made_another_is_refused(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    havoc.played(3)
    monkeypatch.setattr(past, "TURN", 0.0)

    async def two() -> None:
        shown = RecordingPast(recorded, ORIGIN)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(shown.page(page("/fleet", 0.0)))
            await asyncio.sleep(0)
            with pytest.raises(SourceFailed, match="one at a time"):
                await shown.page(page("/fleet", 0.0))
        assert first.result().status == 200

    asyncio.run(two())


def test_a_page_that_takes_too_long_is_given_up_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()
    monkeypatch.setattr(past, "PATIENCE", 0.0)
    assert "takes more than" in refused(lambda: RecordingPast(tmp_path, ORIGIN).page(page("/fleet", 0.0)))
    assert children() == before


def test_a_reader_who_leaves_ends_the_process(tmp_path: Path) -> None:
    before = children()

    async def leaves() -> None:
        shown = RecordingPast(tmp_path, ORIGIN)
        asking = asyncio.create_task(shown.page(page("/fleet", 0.0)))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        with pytest.raises(SourceFailed, match="has no segments"):
            await shown.page(page("/fleet", 0.0))

    asyncio.run(leaves())
    assert children() == before


def test_an_empty_or_damaged_folder_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert "has no segments" in refused(lambda: RecordingPast(tmp_path, ORIGIN).page(page("/fleet", 0.0)))
    (tmp_path / "20261118T150302.809Z-000.jsonl.gz").write_bytes(b"no recording")
    assert "is not a recording" in refused(lambda: RecordingPast(tmp_path, ORIGIN).page(page("/fleet", 0.0)))


@pytest.mark.parametrize("problem", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_recording_that_needs_too_much_memory_is_refused_with_a_remedy(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    havoc.played(3)

    async def exhausted(*_: object) -> PastPage:
        raise problem

    monkeypatch.setattr(pastpage, "_page", exhausted)
    found = pastpage.outcome(recorded, ORIGIN, page("/fleet", 0.0))
    assert isinstance(found, past.NoPage)
    assert "numalign record export" in found.text


@pytest.mark.parametrize("room", [0, pastpage.LEAST_MEMORY - 1, pastpage.LEAST_MEMORY])
def test_the_least_memory_is_enough_for_a_small_recording(recorded: Path, room: int) -> None:
    havoc.played(3)
    limited = f"from numalign.cli.results.moments import pastpage as p; p.room = lambda group: {room}; p.main()"
    command = (*interpreter.PYTHON, "-c", limited, str(recorded), ORIGIN)
    text = msgspec.msgpack.encode(page("/fleet", 0.0))
    ended = subprocess.run(command, input=text, capture_output=True, timeout=clusters.PATIENCE, check=True)
    found = msgspec.msgpack.decode(ended.stdout, type=past.Outcome)
    assert (isinstance(found, past.Made), ended.stderr) == (room >= pastpage.LEAST_MEMORY, b"")


@pytest.mark.parametrize(
    "limit, used, room",
    [
        ("1048576000", "848576000", 100_000_000),
        ("8589934592", "0", pastpage.MOST_MEMORY),
        ("100", "200", 0),
        ("max", "0", pastpage.MOST_MEMORY),
        ("", "", pastpage.MOST_MEMORY),
    ],
    ids=["half of what is left", "no more than the most", "nothing left", "no limit", "no control group"],
)
def test_the_process_leaves_memory_to_the_scheduler(tmp_path: Path, limit: str, used: str, room: int) -> None:
    if limit:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text(f"{used}\n")
    assert pastpage.room(tmp_path) == room


def test_the_decisions_of_the_segment_that_is_shown_are_marked(recorded: Path, tmp_path: Path) -> None:
    havoc.played(3)
    folder = tmp_path / "copy"
    folder.mkdir()
    last = sorted(recorded.glob("*.jsonl.gz"))[-1]
    shutil.copy(last, folder)
    source = RecordedSource(folder, ORIGIN, around=1e12)
    whole = RecordedSource(folder).period
    assert source.period is not None
    assert whole is not None
    assert source.period.marks == whole.marks
