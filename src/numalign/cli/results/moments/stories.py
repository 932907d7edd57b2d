"""Tells what happened to a pod, from the queue to its kubelet, for the dashboard's page of a decision.

A scheduler keeps the histories of its pods (`of_scheduler`); a recording has every change (`of_recording`); elsewhere
the pod's object and the latest decisions say what they can (`of_objects`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from numalign.api.decode.structs import Wire
from numalign.api.nrt import publishers
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import DecisionStory, StoryStep
from numalign.kube.resources import PODS
from numalign.kubelet import refusals
from numalign.scheduler.choose.decisionlog import DecisionRecord
from numalign.scheduler.explain.serving import SCHEDULED
from numalign.scheduler.main import Scheduler
from numalign.scheduler.playback import player, recordings
from numalign.scheduler.record import entries

MOST_STEPS: Final = 200


def of_objects(scene: Scene, name: str, uid: str) -> DecisionStory:
    """From the objects and the decisions that are known, the earliest first."""
    steps = [_attempt(scene, each) for each in scene.records if each.uid == uid]
    pod = _pod(scene, name, uid)
    steps += _of_object(pod) if pod is not None else ()
    return DecisionStory(tuple(sorted(steps, key=lambda step: step.at)))


def of_scheduler(scheduler: Scheduler, uid: str) -> DecisionStory:
    """The history that the scheduler of this process keeps."""
    histories = scheduler.histories.of(uid)
    if not histories:
        return DecisionStory()
    history, now, wall = histories[-1], scheduler.now(), scheduler.wall().timestamp()
    steps = (
        StoryStep(wall - (now - line.at), line.what, tuple((name, str(value)) for name, value in line.about.items()))
        for line in tuple(history.lines)
    )
    return DecisionStory(tuple(steps), history.left_out)


def of_recording(folder: Path, uid: str) -> DecisionStory:
    """Every entry of a recording that is about the pod."""
    steps = list[StoryStep]()
    for file in recordings.files(folder):
        for segment in player.opened(file.path):
            last = segment.head.now
            for entry in segment.changes():
                last = max(last, player.moment(entry, last))
                what = _told(entry, uid)
                if what is not None:
                    steps.append(StoryStep(segment.head.wall(last).timestamp(), *what))
    return DecisionStory(tuple(steps[:MOST_STEPS]), max(0, len(steps) - MOST_STEPS))


class _Status(Wire, frozen=True):
    phase: str = ""


class _Object(Wire, frozen=True):
    """An object reduced to what tells whose it is."""

    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()


_OBJECT: Final = msgspec.json.Decoder(_Object)
OF_POD: Final[Mapping[type[entries.Entry], str]] = {
    entries.PodWaits: "waits for a node",
    entries.PodSeen: "seen on its node",
    entries.PodGone: "gone",
    entries.Nominated: "nominated",
    entries.Rejected: "rejected by the kubelet",
}
ABOUT_PODS: Final = (
    entries.PodWaits,
    entries.PodSeen,
    entries.PodGone,
    entries.Nominated,
    entries.Rejected,
)
BY_UID: Final[Mapping[type[entries.Entry], str]] = {
    entries.Assumed: "counts on its node",
    entries.BindingSent: "binding sent",
    entries.BindingAccepted: "binding accepted",
    entries.BindingFailed: "binding failed",
    entries.VictimsExpected: "waits for evicted pods",
    entries.NominationEnded: "nomination ended",
}


def _told(entry: entries.Change, uid: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The entry in words; None: it is about something else."""
    if isinstance(entry, entries.Attempted):
        return _attempted(entry.decision) if entry.decision.uid == uid else None
    if type(entry) in BY_UID:
        return (BY_UID[type(entry)], ()) if getattr(entry, "uid", "") == uid else None
    if not isinstance(entry, ABOUT_PODS) or uid.encode() not in bytes(entry.object):
        return None
    seen = _OBJECT.decode(entry.object)
    if seen.metadata.uid != uid:
        return None
    about = {"node": getattr(entry, "node", ""), "reason": getattr(entry, "reason", ""), "phase": seen.status.phase}
    return OF_POD[type(entry)], _said(about)


def _attempted(record: DecisionRecord) -> tuple[str, tuple[tuple[str, str], ...]]:
    what = "node chosen" if record.node else "no node was sought" if record.is_held else "no node fits"
    about = {"attempt": str(record.attempt), "node": record.node, "zones": record.zones, "message": record.message}
    return what, _said(about)


def _said(about: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in about.items() if text)


def _pod(scene: Scene, name: str, uid: str) -> Pod | None:
    pods: Iterable[Pod] = scene.waiting.values()
    if scene.snapshot is not None:
        pods = scene.snapshot.every(PODS)
    elif (assigned := scene.cluster.world.pods.get(uid)) is not None:
        pods = (assigned.pod,)
    return next((pod for pod in pods if pod.metadata.uid == uid and pod.metadata.full_name == name), None)


def _attempt(scene: Scene, record: DecisionRecord) -> StoryStep:
    return StoryStep(scene.wall(record.at), *_attempted(record))


def _of_object(pod: Pod) -> Iterator[StoryStep]:
    def step(time: str | None, what: str, *about: tuple[str, str]) -> Iterator[StoryStep]:
        then = publishers.moment(time)
        if then is not None:
            yield StoryStep(then.timestamp(), what, tuple(pair for pair in about if pair[1]))

    status = pod.status
    yield from step(pod.metadata.creation_timestamp, "created")
    for each in status.conditions:
        if each.type == SCHEDULED and each.status == "True":
            yield from step(each.last_transition_time, "bound", ("node", pod.spec.node_name))
    seen = "rejected by the kubelet" if refusals.is_rejection(pod) else "seen by the kubelet"
    yield from step(status.start_time, seen, ("reason", status.reason), ("message", status.message))
    for container in status.container_statuses:
        running = container.state.running
        if running is not None:
            yield from step(running.started_at, "container started", ("container", container.name))
    yield from step(pod.metadata.deletion_timestamp, "deleted")
