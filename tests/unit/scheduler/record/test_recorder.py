"""The recorder: what it writes when, and that the scheduler goes on whatever the disk does."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.api.objects.pod import Pod, PodSpec
from numalign.scheduler.playback import player, recordings
from numalign.scheduler.record import entries, recorder, segments, taps
from numalign.scheduler.record.entries import Ticked
from numalign.scheduler.record.recorder import Recorder, RecordingLimits
from numalign.scheduler.record.taps import Tape
from numalign.simulator import virtualtime

LIMITS = RecordingLimits(size=1 << 20, age=800.0)


async def at_once(write: Callable[[], None]) -> None:
    write()


def state() -> Iterator[bytes]:
    yield b'{"items":'
    yield b"[]}"


async def recording(
    folder: Path, plot: Callable[[Tape], None], seconds: int, tape: Tape, limits: RecordingLimits = LIMITS
) -> None:
    """`plot` happens once a second."""
    clock = virtualtime.clock(random.Random(1))
    made = Recorder(tape, folder, state, clock, limits, at_once)
    task = asyncio.ensure_future(made.run())
    await clock.sleep(0.5)
    for _ in range(seconds):
        plot(tape)
        await clock.sleep(1.0)
    task.cancel()
    await asyncio.wait((task,))


def ticking(tape: Tape) -> None:
    if tape.is_on:
        tape.write(Ticked(1.0))


def ticks(folder: Path) -> list[int]:
    """How many entries each segment has."""
    return [
        sum(isinstance(each, entries.Ticked) for each in segment.changes())
        for file in segments.listed(folder)
        for segment in player.opened(file.path)
    ]


def test_every_entry_is_written_and_each_segment_begins_with_the_state(tmp_path: Path) -> None:
    virtualtime.run(recording(tmp_path, ticking, 10, Tape()))
    assert ticks(tmp_path) == [10]
    lines = list(segments.lines(segments.listed(tmp_path)[0].path))
    assert segments.is_head(lines[0])
    assert lines[1] == b'{"items":[]}'


def test_a_segment_ends_after_an_eighth_of_the_age_and_nothing_is_lost_between_two(tmp_path: Path) -> None:
    virtualtime.run(recording(tmp_path, ticking, 350, Tape()))
    found = ticks(tmp_path)
    assert len(found) == 4
    assert sum(found) == 350


def test_the_recording_stays_within_its_size(tmp_path: Path) -> None:
    def busy(tape: Tape) -> None:
        for number in range(200):
            tape.write(entries.NodeGone(f"{number * 7919:x}"))

    virtualtime.run(recording(tmp_path, busy, 120, Tape(), RecordingLimits(size=64 << 10, age=1e6)))
    kept = segments.listed(tmp_path)
    assert len(kept) > 4
    assert sum(each.size for each in kept) <= (64 << 10) * 1.1


def test_after_the_segment_that_is_written_was_deleted_another_one_begins(tmp_path: Path) -> None:
    seen = list[int]()

    def deleting(tape: Tape) -> None:
        seen.append(len(segments.listed(tmp_path)))
        if len(seen) == 5:
            recordings.trimmed(tmp_path, 0, None)
        ticking(tape)

    virtualtime.run(recording(tmp_path, deleting, 10, Tape()))
    assert ticks(tmp_path) == [5]


def test_a_full_disk_ends_the_segment_with_a_warning_and_another_begins_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, full = segments.packed, [3]

    def packed(lines: bytes) -> bytes:
        full[0] -= 1
        if full[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(lines)

    monkeypatch.setattr(segments, "packed", packed)
    virtualtime.run(recording(tmp_path, ticking, 100, Tape()))
    assert "No space left on device. Check the folder of --record" in caplog.text
    found = ticks(tmp_path)
    assert len(found) == 2
    assert found[1] > 20


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    virtualtime.run(recording(tmp_path / "file" / "below", ticking, 5, Tape()))
    assert "Recording paused for 60 s" in caplog.text


def test_entries_that_wait_too_long_for_the_disk_are_given_up_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tape = Tape(most=2000)

    def flood(tape: Tape) -> None:
        for _ in range(500):
            ticking(tape)

    virtualtime.run(recording(tmp_path, flood, 3, tape))
    assert tape.lost > 0
    assert not tape.is_on
    assert "too slowly" in caplog.text
    assert recorder.RETRY == 60.0


def test_an_object_that_cannot_be_encoded_ends_the_segment_and_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"x": deep}
    odd, tape = Pod(spec=PodSpec(scheduling_group=deep)), Tape()
    plots = iter([ticking, lambda tape: tape.write(entries.PodWaits(2.0, entries.discreet(odd)))])
    virtualtime.run(recording(tmp_path, lambda tape: next(plots, ticking)(tape), 100, tape))
    assert tape.lost == 1
    assert "Recording paused for 60 s: an object is nested too deeply; 1 entries lost" in caplog.text
    first, second = ticks(tmp_path)
    assert first == 1
    assert second > 20


def test_entries_are_read_in_the_order_in_which_they_were_written_however_many() -> None:
    for count in (1, taps.BATCH - 1, taps.BATCH, 3 * taps.BATCH + 1):
        tape = Tape()
        for number in range(count):
            tape.write(Ticked(float(number)))
        found = [entries.read(line) for line in tape.take().splitlines()]
        assert found == [Ticked(float(number)) for number in range(count)]
        assert tape.take() == b""
