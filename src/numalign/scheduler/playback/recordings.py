"""Whole recordings: their segments, their attempts, and copies of a part.

`numalign record` calls it with a folder that `numalign scheduler run --record` wrote, or with an exported file, which
has the segments of a folder one after another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.playback import player
from numalign.scheduler.playback.player import Played, Player
from numalign.scheduler.record import entries, segments
from numalign.scheduler.record.segments import SegmentFile

CHUNK: Final = 1 << 20


class SegmentSummary(Struct, frozen=True, kw_only=True):
    """One segment: what it covers, and how much it has."""

    segment: str
    program: str
    """The version that wrote it."""
    begun: datetime
    ended: datetime
    """The time of its last entry."""
    entries: int
    decisions: int
    size: int
    """Bytes of the file that it is in."""


class RecordedAttempt(Struct, frozen=True, kw_only=True):
    """One attempt of a recording."""

    at: datetime
    record: DecisionRecord


class Repetition(Struct, frozen=True):
    """One attempt and its repetition."""

    at: datetime
    played: Played

    @property
    def differs(self) -> bool:
        """Whether the decision came out differently; no, if it was not repeated."""
        return self.played.again is not None and self.played.again.agrees is False


def files(folder: Path) -> list[SegmentFile]:
    """The files of a recording. BadObject if there are none."""
    try:
        found = segments.listed(folder)
    except OSError as problem:
        raise BadObject("Recording", str(folder), "", f"cannot be read: {problem.strerror}") from None
    if not found:
        why = "has no segments; name the folder of `numalign scheduler run --record`, or an exported file"
        raise BadObject("Recording", str(folder), "", why if folder.is_dir() else "does not exist")
    return found


def summaries(folder: Path) -> Iterator[SegmentSummary]:
    for file in files(folder):
        for segment in player.opened(file.path):
            count = decisions = 0
            last = segment.head.now
            for entry in segment.changes():
                count += 1
                decisions += isinstance(entry, entries.Attempted)
                last = max(last, player.moment(entry, last))
            yield SegmentSummary(
                segment=file.path.name,
                program=segment.head.program,
                begun=segment.head.wall(segment.head.now),
                ended=segment.head.wall(last),
                entries=count,
                decisions=decisions,
                size=file.size,
            )


def attempts(folder: Path) -> Iterator[RecordedAttempt]:
    """The attempts, the oldest first."""
    for file in files(folder):
        for segment in player.opened(file.path):
            for entry in segment.changes():
                if isinstance(entry, entries.Attempted):
                    yield RecordedAttempt(at=segment.head.wall(entry.decision.at), record=entry.decision)


def repeated(folder: Path, config: Configuration | None = None, node: str = "") -> Iterator[Repetition]:
    """Repeats all attempts, the oldest first. `config` replaces the recorded one; `node`: with details of this node."""
    for file in files(folder):
        for segment in player.opened(file.path):
            for played in Player(segment, config, node).play():
                yield Repetition(segment.head.wall(played.record.at), played)


def exported(folder: Path, to: BinaryIO, since: datetime | None, until: datetime | None) -> int:
    """Copies the segments that have something of that time, one after another. Returns how many."""
    found = files(folder)
    begun = [_begun(each) for each in found]
    copied = 0
    for place, each in enumerate(found):
        follows = begun[place + 1] if place + 1 < len(found) else None
        if (until is not None and begun[place] > until) or (since is not None and follows and follows <= since):
            continue
        if since is not None and follows is None and each.written < since:
            continue
        with each.path.open("rb") as source:
            while chunk := source.read(CHUNK):
                to.write(chunk)
        copied += 1
    return copied


def _begun(file: SegmentFile) -> datetime:
    head = segments.head(next(segments.lines(file.path), b""), file.path)
    return head.wall(head.now)


def trimmed(folder: Path, most_bytes: float, oldest: datetime | None) -> list[SegmentFile]:
    """Deletes the oldest segments. Returns those that are gone."""
    if folder.is_file():
        raise BadObject("Recording", str(folder), "", "is not a folder; an exported file is deleted as a whole")
    gone = segments.surplus(files(folder), most_bytes, oldest)
    for each in gone:
        each.path.unlink(missing_ok=True)
    return gone
