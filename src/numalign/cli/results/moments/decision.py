"""Describes one decision for the dashboard: its scores, the pod's story, and the decision once more with what all nodes
said.

Sources call `detail` and `repeated`, or `recorded`. A dump has what is needed to repeat its latest decisions, a
recording has it for all of its decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from numalign.api.errors import BadObject
from numalign.cli.results.moments import moment, waiting
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import Cause, DecisionDetail, NodeAnswer, Repetition, Score
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.choose.scoring import NodeScore
from numalign.scheduler.explain import replay
from numalign.scheduler.explain.replay import ReplayResult
from numalign.scheduler.playback import player, recordings
from numalign.scheduler.playback.player import Player
from numalign.scheduler.record import entries

MOST_REFUSED: Final = 200
MOST_SCORES: Final = 200
RECORDING: Final = "the recording"
DUMP: Final = "the state that the scheduler had when it was read, less what it decided later"
HELD: Final = "no node was sought in this attempt, so there is nothing to repeat"
GONE: Final = "the pod is not there any more"


def detail(scene: Scene, key: str, repeats: str) -> DecisionDetail | None:
    """Without the pod's story. None: there is no such decision any more. `repeats`: what it can be repeated from."""
    record = _record(scene, key)
    if record is None:
        return None
    same = [each for each in scene.records if each.uid == record.uid and each is not record]
    return DecisionDetail(
        decision=moment.decision(scene, record),
        scores=tuple(map(_score, record.best)),
        others=tuple(moment.decision(scene, each) for each in same),
        repeats=repeats if not record.is_held else "",
    )


def _record(scene: Scene, key: str) -> DecisionRecord | None:
    return next((each for each in reversed(scene.records) if moment.key(each) == key), None)


def _score(found: NodeScore) -> Score:
    return Score(found.node, found.total, found.plugins)


def repeated(scene: Scene, key: str) -> Repetition | None:
    """From a dump."""
    record = _record(scene, key)
    if record is None or scene.snapshot is None:
        return None
    if record.is_held:
        return Repetition(agrees=None, problems=(HELD,))
    try:
        found = replay.repeated(scene.snapshot, record.pod, attempt=record.attempt, every=True)
    except BadObject as problem:
        return Repetition(agrees=None, problems=(str(problem),))
    return repetition(found)


def recorded(folder: Path, key: str) -> Repetition | None:
    """From a recording: plays the segment that has the decision up to it."""
    for file in recordings.files(folder):
        for number, segment in enumerate(player.opened(file.path)):
            wanted = next((each for each in _attempts(segment.changes()) if moment.key(each) == key), None)
            if wanted is not None:
                return _played(file.path, number, wanted)
    return None


def _attempts(changes: Iterable[entries.Change]) -> Iterator[DecisionRecord]:
    return (each.decision for each in changes if isinstance(each, entries.Attempted))


def _played(path: Path, number: int, wanted: DecisionRecord) -> Repetition:
    segment = next(each for count, each in enumerate(player.opened(path)) if count == number)
    for played in Player(segment, in_full=(wanted.uid, wanted.attempt)).play():
        if moment.key(played.record) == moment.key(wanted):
            if played.again is not None:
                return repetition(played.again)
            return Repetition(agrees=None, problems=(HELD if played.record.is_held else GONE,))
    return Repetition(agrees=None, problems=(GONE,))


def repetition(found: ReplayResult) -> Repetition:
    explained = found.explained
    refused, causes = tuple[NodeAnswer, ...](), tuple[Cause, ...]()
    if explained is not None:
        causes = waiting.causes(explained)
        refused = tuple(waiting.node_answer(node, explained.refused[node]) for node in explained.closest[:MOST_REFUSED])
    return Repetition(
        agrees=found.agrees,
        node=found.node,
        zones=found.zones,
        message=found.message,
        scores=tuple(map(_score, found.scores[:MOST_SCORES])),
        causes=causes,
        refused=refused,
        problems=found.problems,
    )
