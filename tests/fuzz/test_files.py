"""Files that users hand over are read or refused: dumps and recordings, and what the planner reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from numalign.api.decode import yamltext
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.kubelet.machine import presets
from numalign.plan import trace
from numalign.plan.sources import catalogue, workloadtable
from numalign.plan.sweep import runner
from numalign.scheduler.playback import recordings
from numalign.scheduler.record import entries, segments
from numalign.scheduler.record.segments import SegmentHead
from numalign.scheduler.snapshot import files, restore
from tests.fuzz import campaign
from tests.fuzz.campaign import COUNTS, Target
from tests.unit.scheduler import servers
from tests.unit.scheduler.snapshot.test_files import taken

CATALOGUE = """apiVersion: numalign.io/v1alpha1
kind: MachineCatalogue
currency: EUR
machines:
- name: a
  machine: 2x16
  kubelet: {topologyManagerPolicy: restricted, cpuManagerPolicy: static, reservedSystemCPUs: "0-1"}
  kubeletVersion: "1.36"
  price: 1.5
  count: 3
  labels: {a: b}
- {name: b, machine: {zones: [{cpus: 0-15, memory: 64Gi}]}, price: 2}
"""
TABLE = "name,pods,weight,cpu,memory,nvidia.com/gpu\na,10,3,4,8Gi,1\nb,2,,500m,1Gi,\n"
MACHINES = b"sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,G1\nn2,64000,262144,0,\n"
PODS = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,12000,16384,1,1000,G1\np1,1000,1024,1,500,\n"
DUMP = b"".join(files.pieces(taken()))
HEAD = SegmentHead(program="1", begun="2026-11-18T12:00:00.000Z", now=12.5)


def _object(thing: Any) -> Raw:
    return Raw(encode(thing))


HISTORY = entries.lines(
    [
        entries.NodeSeen(now=13.0, object=_object(servers.node("c"))),
        entries.ReportSeen(now=13.0, object=_object(servers.reported("c"))),
        entries.PodWaits(now=13.5, object=_object(servers.trainer("z"))),
        entries.PodSeen(now=14.0, object=_object(servers.on(servers.trainer("y"), "c"))),
        entries.Ticked(now=15.0),
        entries.Rejected(now=15.5, node="c", reason="x", object=_object(servers.trainer("y"))),
        entries.Nominated(node="c", object=_object(servers.trainer("z"))),
        entries.PodGone(now=16.0, object=_object(servers.on(servers.trainer("y"), "c"))),
        entries.ReportGone(now=17.0, node="c"),
        entries.NodeGone(name="c"),
    ]
)
JOURNAL = b"\n".join(
    [
        b'{"subject":"s","version":"v"}',
        msgspec.json.encode(runner.FinishedRun(point={"topology-policy": "restricted"}, seed=1, problem="x")),
        b"",
    ]
)


def _played(folder: Path) -> Callable[[bytes], None]:
    path = folder / "recording.jsonl.gz"

    def played(raw: bytes) -> None:
        path.write_bytes(segments.packed(raw))
        for each in (recordings.repeated, recordings.summaries, recordings.attempts):
            list(each(path))

    return played


def _with(read: Callable[[bytes], None], before: bytes, after: bytes = b"") -> Callable[[bytes], None]:
    return lambda raw: read(before + raw + after)


def _traced(folder: Path, damaged: str) -> Callable[[bytes], object]:
    whole = {trace.NODES: MACHINES, trace.PODS.format("x"): PODS}

    def read(raw: bytes) -> object:
        for name, content in (whole | {damaged: raw}).items():
            (folder / name).write_bytes(content)
        return trace.read(folder, "x")

    return read


def _resumed(folder: Path) -> Callable[[bytes], None]:
    def resumed(raw: bytes) -> None:
        (folder / runner.JOURNAL).write_bytes(raw)
        runner.Journal(folder, "s", "v").close()

    return resumed


def _catalogue(raw: bytes) -> list[object]:
    documents = yamltext.documents(raw.decode(errors="replace"), "file")
    return [catalogue.read(each.value, each.place, presets.machine) for each in documents]


STATE = DUMP + b"\n"
TARGETS: Mapping[str, Callable[[Path], Target]] = {
    "dump": lambda _: Target(lambda raw: restore.restored(files.read(raw, "file")), [DUMP], share=0.1, in_parts=True),
    "packed dump": lambda _: Target(lambda raw: files.read(raw, "file"), [files.packed(DUMP)], share=0.2),
    "recording": lambda folder: Target(_with(_played(folder), segments.head_line(HEAD) + STATE), [HISTORY], share=0.05),
    "entries of a recording": lambda folder: Target(
        _with(_played(folder), segments.head_line(HEAD) + STATE, b"\n" + HISTORY),
        [json.dumps(json.loads(line)).encode() for line in HISTORY.splitlines()],
        share=0.05,
        in_parts=True,
    ),
    "head of a recording": lambda folder: Target(
        _with(_played(folder), b"", STATE + HISTORY), [segments.head_line(HEAD)], share=0.05
    ),
    "catalogue": lambda _: Target(_catalogue, [CATALOGUE.encode()], share=0.2),
    "workload table": lambda _: Target(
        lambda raw: workloadtable.read(raw.decode(errors="replace"), "file"), [TABLE.encode()]
    ),
    "trace: nodes": lambda folder: Target(_traced(folder, trace.NODES), [MACHINES], share=0.2),
    "trace: pods": lambda folder: Target(_traced(folder, trace.PODS.format("x")), [PODS], share=0.2),
    "journal of a sweep": lambda folder: Target(_resumed(folder), [JOURNAL], share=0.2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", TARGETS)
def test_files_that_users_hand_over_are_read_or_refused(name: str, count: int, tmp_path: Path) -> None:
    campaign.read_or_refused(name, TARGETS[name](tmp_path), count)


def test_a_small_recording_that_unpacks_to_gigabytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "LONGEST_LINE", 1 << 20)
    path = tmp_path / "recording.jsonl.gz"
    for text in (b"a" * (2 << 20), b"\n" * (2 << 20)):
        path.write_bytes(segments.packed(text))
        with pytest.raises(BadObject, match="a line is too long"):
            list(segments.lines(path))
    path.write_bytes(segments.packed(b"a" * (1 << 19)) * 3)
    with pytest.raises(BadObject, match="a line is too long"):
        list(segments.lines(path))
