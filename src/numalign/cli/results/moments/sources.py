"""Sources of the dashboard: a scheduler in this process, a cluster or a scheduler elsewhere, a file, and a recording.

`numalign dashboard` and `numalign scheduler run` make them. Whatever takes long runs in a thread; a cluster or a
scheduler elsewhere is read only while a page is open, and the less often the longer it takes."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from numalign.api.errors import BadObject
from numalign.cli.results.moments import decision, moment, scene, stories
from numalign.cli.results.moments.details import SceneDetails
from numalign.cli.results.moments.fleet import FleetTable
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import DecisionDetail, DecisionStory, Repetition
from numalign.dashboard.moment import Moment
from numalign.dashboard.source import Period, SourceFailed
from numalign.kube.resources import PODS
from numalign.scheduler.choose import decisionlog
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.main import Scheduler
from numalign.scheduler.playback import player, recordings
from numalign.scheduler.playback.player import Player, Segment
from numalign.scheduler.record import entries, segments
from numalign.scheduler.snapshot import dump

T = TypeVar("T")
SHORTEST: Final = 1.0
"""Seconds for which a moment of this process counts as the present one."""
READ_EVERY: Final = 5.0
"""Seconds between two reads of a cluster or a scheduler elsewhere."""
SHARE: Final = 20
"""At least so many times as long as a read takes."""
MOST_MARKS: Final = 400


class SceneSource(SceneDetails):
    """A source of scenes, with all that the pages ask of a scene."""

    is_live = True
    period: Period | None = None

    def __init__(self) -> None:
        super().__init__()
        self._table = FleetTable()
        self._made: tuple[object, Moment] | None = None

    async def moment(self, at: float | None = None) -> Moment:
        async with self._asking:
            found = await self.scene(at)
            if self._made is None or self._made[0] is not found:
                self._made = (found, await moment.taken(found, self._table))
            return self._made[1]


class FixedSource(SceneSource):
    """A cluster as it was: a dump, or what kubectl printed."""

    is_live = False

    def __init__(self, shown: Scene) -> None:
        super().__init__()
        self._scene = shown

    async def scene(self, at: float | None = None) -> Scene:
        return self._scene


class ReadSource(SceneSource):
    """A cluster, or a scheduler elsewhere, that is read again now and then while a page is open."""

    def __init__(self, read: Callable[[], Scene], first: Scene) -> None:
        """`read` runs in a thread; BadObject says why it failed. `first`: what it returned at the beginning."""
        super().__init__()
        self._read = read
        self._last = first
        self._reading = asyncio.Lock()
        self._next = time.monotonic() + READ_EVERY

    async def scene(self, at: float | None = None) -> Scene:
        async with self._reading:
            begun = time.monotonic()
            if begun >= self._next:
                try:
                    self._last = await asyncio.to_thread(self._read)
                except BadObject as problem:
                    raise SourceFailed(str(problem)) from None
                ended = time.monotonic()
                self._next = ended + max(READ_EVERY, SHARE * (ended - begun))
            return self._last


class SchedulerSource(SceneSource):
    """The scheduler of this process. Moments are read from its own view; questions are asked of a copy."""

    def __init__(self, scheduler: Scheduler, origin: str, recording: Path | None = None) -> None:
        """`recording`: the folder that it records into; `past` shows what is in it."""
        super().__init__()
        self._scheduler, self._origin, self._recording = scheduler, origin, recording
        self._making = asyncio.Lock()
        self._present: Moment | None = None
        self._next = 0.0
        self._copy: Scene | None = None
        self._copied = 0.0

    async def scene(self, at: float | None = None) -> Scene:
        """The state is copied at once, as for a dump, and restored in a thread."""
        self._check()
        now = self._scheduler.now()
        if self._copy is None or now - self._copied > READ_EVERY:
            taken = dump.taken(self._scheduler)
            self._copied = now
            self._copy = await asyncio.to_thread(scene.of_snapshot, taken, self._origin)
        return self._copy

    async def moment(self, at: float | None = None) -> Moment:
        self._check()
        async with self._making:
            now = self._scheduler.now()
            if self._present is None or now >= self._next:
                self._present = await moment.taken(self._seen(), self._table)
                if self._recording is not None:
                    self.period = await asyncio.to_thread(_to_this_moment, self._recording, self._present)
                self._next = self._scheduler.now() + SHORTEST
            return self._present

    async def decision(self, key: str, at: float | None = None) -> DecisionDetail | None:
        """Moments have decisions that the copy may not have yet."""
        found = await super().decision(key, at)
        if found is None and self._scheduler.now() - self._copied > SHORTEST:
            self._copy = None
            return await super().decision(key, at)
        return found

    async def _story(self, pod: str, uid: str, at: float | None) -> DecisionStory:
        return stories.of_scheduler(self._scheduler, uid)

    def _check(self) -> None:
        if not self._scheduler.watched.has_synced:
            raise SourceFailed("The scheduler is still reading the cluster. Try again in a moment.")

    def _seen(self) -> Scene:
        """The scheduler's own view, for reading only."""
        scheduler = self._scheduler
        pods = scheduler.watched.informers[PODS.plural].store
        return Scene(
            cluster=scheduler.cluster,
            at=scheduler.wall().timestamp(),
            now=scheduler.now(),
            origin=self._origin,
            waiting={pod.metadata.full_name: pod for pod in pods if scene.is_waiting(pod)},
            queue=moment.queued(scheduler),
            records=tuple(map(decisionlog.record_of, scheduler.decision_log)),
            health=moment.health(scheduler),
        )


class RecordedSource(SceneSource):
    """A recording: the cluster as a scheduler saw it at any time of the recording's period."""

    is_live = False
    repeats = decision.RECORDING

    def __init__(self, folder: Path, origin: str = "", around: float | None = None) -> None:
        """BadObject if it is no recording. `around`: a scheduler is writing it, and one page of this time is wanted, so
        that only the decisions of the time's segment are looked for."""
        super().__init__()
        self._folder = folder
        self._origin = origin or f"recording {folder.name}"
        self._begun, marks, end = _indexed(folder) if around is None else _begun(folder, around)
        self.period = Period(self._begun[0][0], end, marks, goes_on=around is not None)
        self._playing: tuple[int, Player, list[DecisionRecord]] | None = None
        self._shown: Scene | None = None
        self._stepping = asyncio.Lock()

    async def scene(self, at: float | None = None) -> Scene:
        assert self.period is not None
        at = self.period.end if at is None else min(max(at, self.period.begin), self.period.end)
        async with self._stepping:
            if self._shown is None or self._shown.at != at:
                try:
                    self._shown = await asyncio.to_thread(self._played, at)
                except BadObject as problem:
                    raise SourceFailed(str(problem)) from None
            return self._shown

    async def repeated(self, key: str, at: float | None = None) -> Repetition | None:
        return await self._read(decision.recorded, key)

    async def _story(self, pod: str, uid: str, at: float | None) -> DecisionStory:
        return await self._read(stories.of_recording, uid)

    async def _read(self, read: Callable[[Path, str], T], wanted: str) -> T:
        try:
            return await asyncio.to_thread(read, self._folder, wanted)
        except BadObject as problem:
            raise SourceFailed(str(problem)) from None

    def _played(self, at: float) -> Scene:
        """Goes on from the last scene where it is before that time; else from the beginning of its segment."""
        place = _place(self._begun, at)
        begun, path, number = self._begun[place]
        if self._playing is None or self._playing[0] != place or (self._shown is not None and self._shown.at > at):
            opened = (each for count, each in enumerate(player.opened(path)) if count == number)
            self._playing = (place, Player(next(opened)), [])
        _, playing, records = self._playing
        until = playing.segment.head.now + (at - begun)
        records += [played.record for played in playing.play(until)]
        playing.now = until
        return scene.of_player(playing, tuple(records), at, self._origin)


def _indexed(folder: Path) -> tuple[list[tuple[float, Path, int]], tuple[float, ...], float]:
    """Segments by the time when they begin, the times of decisions, and the end."""
    begun, marks, end = list[tuple[float, Path, int]](), list[float](), 0.0
    for file in recordings.files(folder):
        for number, segment in enumerate(player.opened(file.path)):
            begun.append((segment.head.wall(segment.head.now).timestamp(), file.path, number))
            end = max(end, _marked(segment, marks))
    return begun, _thinned(marks), end


def _begun(folder: Path, around: float) -> tuple[list[tuple[float, Path, int]], tuple[float, ...], float]:
    """The same of a folder that a scheduler writes, whose files have one segment each. Reads one of them, and of the
    others the name."""
    found = recordings.files(folder)
    begun = [(named.timestamp(), each.path, 0) for each in found if (named := segments.begun(each.path)) is not None]
    if not begun:
        raise BadObject("Recording", str(folder), "", "has no segment that a scheduler named")
    marks = list[float]()
    _marked(next(player.opened(begun[_place(begun, around)][1])), marks)
    return begun, _thinned(marks), max(found[-1].written.timestamp(), begun[-1][0])


def _place(begun: list[tuple[float, Path, int]], at: float) -> int:
    """Of the segment that has this time."""
    return max(0, bisect_right([since for since, *_ in begun], at) - 1)


def _marked(segment: Segment, marks: list[float]) -> float:
    """Adds the times of the segment's decisions to the marks. Returns when it ends."""
    head = segment.head
    last = head.now
    for entry in segment.changes():
        last = max(last, player.moment(entry, last))
        if isinstance(entry, entries.Attempted):
            marks.append(head.wall(entry.decision.at).timestamp())
    return head.wall(last).timestamp()


def _thinned(marks: list[float]) -> tuple[float, ...]:
    return tuple(marks[:: max(1, len(marks) // MOST_MARKS)])


def _to_this_moment(folder: Path, shown: Moment) -> Period | None:
    """Of a recording that a scheduler is writing, by the names of its files. None: there is nothing in it yet."""
    try:
        first = next((named for each in segments.listed(folder) if (named := segments.begun(each.path))), None)
    except OSError:
        return None
    if first is None:
        return None
    since = first.timestamp()
    return Period(since, shown.at, _thinned([each.at for each in reversed(shown.decisions) if each.at >= since]), True)
