"""What the scheduler's process costs while it does nothing: its memory, and what heartbeats take of a core.

In a process of its own. Objects come as lines of a watch, of the size that they have in clusters, and are read and kept
as the informers do it: nodes with fifty images, reports of two zones, running pods in sets of 50. Leases do not reach
a scheduler; nodes write their status every five minutes, publishers their report every minute, and once a second the
scheduler looks at the time."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks import _child, _pods, _templates
from benchmarks._inprocess import InProcess
from numalign.api.decode import decode, structs
from numalign.api.objects.pod import Pod
from numalign.kube import lists

PODS_OF_A_SET: Final = 50
POD_BYTES: Final = 5000
IMAGES: Final = 50
NODE_PERIOD, REPORT_PERIOD = 300.0, 60.0
BEATS: Final = 1000

Line = bytes


class Task(Struct, frozen=True):
    nodes: int
    pods: int


def measured(nodes: int, pods: int) -> dict[str, float]:
    """`bytes` of the whole process; `share` of a core."""
    return _child.asked(__spec__.name, Task(nodes, pods))


def node(number: int, beat: int) -> Line:
    tree = _templates.node(name(number), f"zone-{number % 3}", numa=2)
    tree["metadata"] |= {"resourceVersion": str(beat), "managedFields": [{"fieldsV1": {"f": "x" * 2000}}]}
    images = [
        {"names": [f"{image}@sha256:{each:064}", f"{image}:v1"], "sizeBytes": 1 << 28}
        for each, image in enumerate(f"registry.example/app-{each}" for each in range(IMAGES))
    ]
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-11-16T00:{beat % 60:02}:00Z"}
    tree["status"] |= {"images": images, "conditions": [ready]}
    return line(tree)


def report(number: int, beat: int) -> Line:
    tree = msgspec.to_builtins(_templates.report(name(number), 2), enc_hook=structs.encodable)
    tree["metadata"] = {"name": name(number), "uid": f"nrt-{number}", "resourceVersion": str(beat)}
    return line(tree)


def pod(number: int, nodes: int) -> Line:
    tree = _pods.pod(number, POD_BYTES)
    owner, (first, *_) = f"app-{number // PODS_OF_A_SET}", tree["spec"]["containers"]
    tree["metadata"] |= {"generateName": f"{owner}-", "labels": {"app": owner, "pod-template-hash": owner}}
    tree["metadata"]["namespace"] = f"team-{number // PODS_OF_A_SET % 50}"
    tree["metadata"]["ownerReferences"][0]["name"] = owner
    tree["spec"] |= {"nodeName": name(number % nodes), "schedulerName": "default-scheduler"}
    tree["spec"]["volumes"] = [{"name": f"kube-api-access-{number:05}", "projected": {}}]
    amounts = {"cpu": "250m", "memory": "256Mi"}
    for container in tree["spec"]["containers"]:
        container["resources"] = {"requests": amounts, "limits": amounts}
    for status in tree["status"]["containerStatuses"]:
        status |= {"allocatedResources": amounts, "resources": {"requests": amounts, "limits": amounts}}
    first["image"] = f"registry.example/{owner}:v1"
    return line(tree)


def name(number: int) -> str:
    return f"node-{number:05}"


def line(tree: dict[str, Any]) -> Line:
    return msgspec.json.encode({"type": "MODIFIED", "object": tree})


class Watching(InProcess):
    def read(self, plural: str, written: Line) -> None:
        """A line of the watch: decoded, kept and handed on."""
        resource = self.scheduler.watched.informers[plural]._target.resource
        self.tell(plural, lists.watch_event(resource, written).object)


def measure(task: Task) -> dict[str, float]:
    running = Watching(reports=True)
    for number in range(task.nodes):
        running.read("nodes", node(number, 1))
        running.read("noderesourcetopologies", report(number, 1))
    for number in range(task.pods):
        running.read("pods", pod(number, task.nodes))
    running.turn()
    # Rows are read when the first pod asks for them.
    engine = running.scheduler.cluster.engine
    engine.survey(engine.shape(decode.decode(Pod, _templates.pod("pinned", "first", "default"))))
    gc.collect()
    return {"bytes": resident(), "share": share(running, task.nodes)}


def share(running: Watching, nodes: int) -> float:
    """Seconds of the processor per second."""
    of_nodes = beat(running, "nodes", [node(number % nodes, 2 + number // nodes) for number in range(BEATS)])
    of_reports = beat(
        running, "noderesourcetopologies", [report(number % nodes, 2 + number // nodes) for number in range(BEATS)]
    )
    started = time.process_time()
    for _ in range(BEATS):
        running.scheduler.intake.tick()
        running.turn()
    of_time = (time.process_time() - started) / BEATS
    return of_nodes * nodes / NODE_PERIOD + of_reports * nodes / REPORT_PERIOD + of_time


def beat(running: Watching, plural: str, lines: list[Line]) -> float:
    started = time.process_time()
    for each in lines:
        running.read(plural, each)
        running.turn()
    return (time.process_time() - started) / len(lines)


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    _child.answer(Task, measure)
