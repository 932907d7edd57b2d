"""The cluster of a recording at a time: what was seen until then, and nothing later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.plan.sources import recorded
from numalign.scheduler.record import entries, segments
from numalign.scheduler.record.segments import SegmentHead
from numalign.scheduler.snapshot import files
from tests.machinescenes import node
from tests.unit.plan.plannedclusters import cluster
from tests.unit.scheduler.servers import on, trainer

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def recording(folder: Path) -> Path:
    """A node with a pod at noon; ten seconds later another pod, then the first one ends and the report goes."""
    begun = cluster(node("a", running=[trainer("first")]))
    state = b"".join(files.pieces(begun))
    head = SegmentHead(program="1", begun=segments.stamp(NOON), now=100.0)
    pod = on(trainer("second"), "a", phase="Running")
    gone = begun.every(PODS)[0]
    changes = [
        entries.PodSeen(110.0, entries.discreet(pod)),
        entries.PodWaits(110.0, entries.discreet(trainer("third"))),
        entries.Ticked(115.0),
        entries.PodGone(120.0, entries.discreet(gone)),
        entries.ReportGone(120.0, "a"),
        entries.NodeSeen(121.0, entries.discreet(begun.every(NODES)[0])),
    ]
    _, file = segments.created(folder, NOON)
    with file:
        file.write(segments.packed(encode(head) + b"\n" + state + b"\n"))
        file.write(segments.packed(entries.lines(changes)))
    return folder


def names(folder: Path, seconds: float | None) -> list[str]:
    moment = None if seconds is None else NOON + timedelta(seconds=seconds)
    found = recorded.at(folder, moment)
    assert [each.metadata.name for each in found.every(NODES)] == ["a"]
    return sorted(each.metadata.name for each in found.every(PODS))


def test_the_cluster_is_that_of_the_time(tmp_path: Path) -> None:
    folder = recording(tmp_path)
    assert names(folder, 0) == ["first"]
    assert names(folder, 12) == ["first", "second", "third"]
    assert names(folder, None) == ["second", "third"]
    assert len(recorded.at(folder, NOON).every(TOPOLOGIES)) == 1
    assert recorded.at(folder, None).every(TOPOLOGIES) == ()


def test_a_time_before_the_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match="has nothing of that time; it begins at 2026-11-18T12:00:00Z"):
        recorded.at(recording(tmp_path), NOON - timedelta(seconds=1))
