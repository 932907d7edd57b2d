"""What no scheduler can beat, in a process of its own: one Binding, or one Binding and one Event, for each waiting pod.

It knows all nodes beforehand and decides nothing. The watches that the scheduler has are open beside it, and read as
far as to count their lines. Run by name with a `Task` as JSON."""

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks import _wire
from benchmarks._cluster import node_name
from benchmarks._wire import Endpoint
from numalign.kube import clock, request
from numalign.kube.request import EVERYTHING, Since
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.scheduler.bind import binder
from numalign.scheduler.intake import watching

WATCHED = (
    NODES,
    TOPOLOGIES,
    PODS,
    watching.NAMESPACES,
    watching.SERVICES,
    watching.REPLICATION_CONTROLLERS,
    watching.REPLICA_SETS,
    watching.STATEFUL_SETS,
    watching.CLASSES,
    watching.CSI_NODES,
    watching.CSI_DRIVERS,
    watching.CAPACITIES,
    watching.ATTACHMENTS,
    binder.CLAIMS,
    binder.VOLUMES,
)
QUIET = 1.0
NOW = "%Y-%m-%dT%H:%M:%S.000000Z"


class Task(msgspec.Struct, frozen=True):
    endpoint: Endpoint
    namespace: str
    nodes: int
    bare: bool
    """Neither events nor watches."""


class _Meta(msgspec.Struct, frozen=True):
    name: str
    uid: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Pod]


async def run(task: Task) -> None:
    endpoint = task.endpoint
    path = f"/api/v1/namespaces/{task.namespace}/pods"
    pods = msgspec.json.decode(await _wire.one(endpoint, endpoint.request("GET", path)), type=_Pods).items
    tasks = list(_tasks(task, path, [each.metadata for each in pods]))
    since = Since(version="", seconds=3600)
    watches = [request.watch(each.everywhere(), EVERYTHING, since).target for each in WATCHED]
    async with _wire.following(endpoint, () if task.bare else watches) as followers:
        seen = -1
        while followers and seen < (seen := sum(each.lines for each in followers)):
            await asyncio.sleep(QUIET)
        await _wire.every(endpoint, tasks)
        # Until it is ended from outside: what a process has computed can be read while it is there.
        await asyncio.Event().wait()


def _tasks(task: Task, path: str, pods: list[_Meta]) -> Iterator[tuple[bytes, ...]]:
    endpoint = task.endpoint
    events = f"/apis/events.k8s.io/v1/namespaces/{task.namespace}/events"
    for number, pod in enumerate(pods):
        node = node_name(number % task.nodes)
        bind = endpoint.request("POST", f"{path}/{pod.name}/binding", binding(pod, task.namespace, node))
        if task.bare:
            yield (bind,)
        else:
            yield bind, endpoint.request("POST", events, event(pod, task.namespace, node))


def binding(pod: _Meta, namespace: str, node: str) -> dict[str, Any]:
    annotations = {"numalign.io/placement": "v1;c0=0"}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": namespace, "uid": pod.uid, "annotations": annotations},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def event(pod: _Meta, namespace: str, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod.name}.18b2f3a1c4d5e6f7", "namespace": namespace},
        "eventTime": time.strftime(NOW, time.gmtime()),
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": f"Successfully assigned {namespace}/{pod.name} to {node}",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod.name, "uid": pod.uid},
        "reportingController": "limit",
        "reportingInstance": "limit-0",
    }


if __name__ == "__main__":
    with clock.event_loop_runner() as runner:
        runner.run(run(msgspec.json.decode(sys.argv[1], type=Task)))
