"""The cluster of a recording at a time, as a snapshot.

The command line calls `at` with a folder that `numalign scheduler run --record` wrote, or with an exported file. Only
what the scheduler saw counts: nodes, reports, pods and the objects that plugins read. What it had decided and not yet
seen is left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Raw

from numalign.api.errors import BadObject
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.scheduler.playback import player, recordings
from numalign.scheduler.playback.player import Segment
from numalign.scheduler.record import entries
from numalign.scheduler.snapshot.snapshot import RESOURCES, Snapshot

Key = tuple[str, str]
BY_PLURAL = {resource.plural: resource for resource in RESOURCES}


def at(recording: Path, moment: datetime | None, config: Configuration | None = None) -> Snapshot:
    """The cluster at this time, or at the end. BadObject if there is no recording of that time."""
    found: Snapshot | None = None
    first: datetime | None = None
    for segment in _segments(recording):
        begun = segment.head.wall(segment.head.now)
        first = first or begun
        if moment is not None and begun > moment:
            break
        found = _folded(segment, moment, config)
    if found is None:
        begins = f"; it begins at {first:%Y-%m-%dT%H:%M:%SZ}" if first is not None else ""
        raise BadObject("Recording", str(recording), "", f"has nothing of that time{begins}")
    return found


def _segments(recording: Path) -> Iterator[Segment]:
    for file in recordings.files(recording):
        yield from player.opened(file.path)


def _folded(segment: Segment, until: datetime | None, config: Configuration | None) -> Snapshot:
    """The objects at the beginning of the segment with the changes up to that time."""
    begun = segment.state(config)
    objects = {plural: {_key(each): each for each in listed} for plural, listed in begun.objects.items()}
    last = segment.head.now
    for entry in segment.changes():
        now = player.moment(entry, last)
        if until is not None and segment.head.wall(now) > until:
            break
        last = max(last, now)
        _apply(objects, entry)
    return Snapshot(
        objects={plural: tuple(things.values()) for plural, things in objects.items()},
        config=begun.config,
        wall=segment.head.wall(last).strftime("%Y-%m-%dT%H:%M:%SZ"),
        now=last,
        missing=begun.missing,
        left_out=begun.left_out,
    )


def _apply(objects: dict[str, dict[Key, Any]], entry: entries.Change) -> None:
    match entry:
        case entries.NodeSeen(_, raw):
            _put(objects, NODES.plural, raw)
        case entries.NodeGone(name):
            objects.get(NODES.plural, {}).pop(("", name), None)
        case entries.ReportSeen(_, raw):
            _put(objects, TOPOLOGIES.plural, raw)
        case entries.ReportGone(_, node):
            objects.get(TOPOLOGIES.plural, {}).pop(("", node), None)
        case entries.PodSeen(_, raw) | entries.PodWaits(_, raw):
            _put(objects, PODS.plural, raw)
        case entries.PodGone(_, raw):
            objects.get(PODS.plural, {}).pop(_key(PODS.read(bytes(raw))), None)
        case entries.ObjectSeen(_, resource, raw) if resource in BY_PLURAL:
            _put(objects, resource, raw)
        case entries.ObjectGone(_, resource, raw) if resource in BY_PLURAL:
            objects.get(resource, {}).pop(_key(BY_PLURAL[resource].read(bytes(raw))), None)


def _put(objects: dict[str, dict[Key, Any]], plural: str, raw: Raw) -> None:
    try:
        thing = BY_PLURAL[plural].read(bytes(raw))
    except BadObject:
        # The scheduler skipped it, too.
        return
    objects.setdefault(plural, {})[_key(thing)] = thing


def _key(thing: Any) -> Key:
    return thing.metadata.namespace, thing.metadata.name
