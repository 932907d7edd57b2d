"""The files of a recording: what a crash leaves of them, which are deleted, and what is no recording."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.scheduler.record import segments
from numalign.scheduler.record.segments import SegmentFile, SegmentHead

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
HEAD = SegmentHead(program="1", begun=segments.stamp(NOON), now=100.0)
BLOCKS = [b'{"is":"a"}\n{"is":"b"}\n', b'{"is":"c"}\n', b'{"is":"d"}\n{"is":"e"}\n']


def written(folder: Path) -> Path:
    path, file = segments.created(folder, NOON)
    with file:
        for block in BLOCKS:
            file.write(segments.packed(block))
    return path


@given(cut=st.integers(0, 400))
def test_a_process_that_dies_while_it_writes_loses_only_the_last_block(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = written(tmp_path_factory.mktemp("recording"))
    whole = path.read_bytes()
    kept = whole[: max(0, len(whole) - cut)]
    path.write_bytes(kept)
    sizes = [len(segments.packed(block)) for block in BLOCKS]
    complete = [block for place, block in enumerate(BLOCKS) if sum(sizes[: place + 1]) <= len(kept)]
    assert list(segments.lines(path)) == b"".join(complete).split(b"\n")[:-1]


@given(noise=st.binary(min_size=1, max_size=200))
def test_whatever_follows_the_last_complete_block_is_ignored(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    path = written(tmp_path_factory.mktemp("recording"))
    with path.open("ab") as file:
        file.write(noise)
    assert list(segments.lines(path))[:5] == b"".join(BLOCKS).split(b"\n")[:-1]


def test_only_the_owner_can_read_a_segment(tmp_path: Path) -> None:
    path = written(tmp_path / "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_segments_of_one_moment_are_two_files(tmp_path: Path) -> None:
    assert written(tmp_path) != written(tmp_path)
    assert len(segments.listed(tmp_path)) == 2


@pytest.mark.parametrize(
    "text, why",
    [
        (b"", "is not a recording"),
        (b"[]", "is not a recording"),
        (b'{"kind":"Pod"}', "is not a recording"),
        (b"\xff\xfe", "is not a recording"),
        (b'{"kind":"SchedulerRecording","begun":"2026-01-01T00:00:00Z","schema":99}', "99 is newer than this program"),
    ],
)
def test_a_file_that_is_no_recording_is_refused_by_name(text: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadObject, match=why):
        segments.head(text, tmp_path / "some.jsonl.gz")


def test_a_time_of_the_monotonic_clock_is_told_as_wall_clock_time() -> None:
    assert HEAD.wall(160.0) == NOON + timedelta(seconds=60)


@given(
    sizes=st.lists(st.integers(1, 100), max_size=8),
    most=st.integers(0, 400),
    age=st.integers(0, 8),
)
def test_the_newest_segments_are_kept_within_size_and_age(sizes: list[int], most: int, age: int) -> None:
    files = [
        SegmentFile(Path(f"{place:03}.jsonl.gz"), size, NOON + timedelta(hours=place))
        for place, size in enumerate(sizes)
    ]
    oldest = NOON + timedelta(hours=age)
    gone = segments.surplus(files, most, oldest)
    kept = [each for each in files if each not in gone]
    assert sum(each.size for each in kept) <= most
    assert all(each.written >= oldest for each in kept)
    assert kept == files[len(files) - len(kept) :]
    if gone and kept != files:
        first = files[len(gone) - 1]
        assert first.written < oldest or first.size + sum(each.size for each in kept) > most


def test_a_segment_that_is_deleted_meanwhile_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path)
    real = Path.glob

    def glob(folder: Path, pattern: str) -> list[Path]:
        found = list(real(folder, pattern))
        os.unlink(path)
        return found

    monkeypatch.setattr(Path, "glob", glob)
    assert segments.listed(tmp_path) == []
