"""Counts on a cluster of made-up nodes, and the expander on made-up node groups, measured in a process of its own."""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct, structs

from benchmarks import _child
from benchmarks._cluster import Cluster
from numalign.api.decode import protobuf
from numalign.api.decode.structs import encode
from numalign.api.nrt import normalise
from numalign.placement.capacity import count
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.settings import Settings
from numalign.scheduler.capacity import expandermessages, templates
from numalign.scheduler.capacity.expander import Expander
from numalign.scheduler.capacity.expandermessages import NODE, POD, REQUEST
from numalign.scheduler.choose import cluster as clusters

RUNS = 5


class Task(Struct, frozen=True, kw_only=True):
    """`kinds`: so many nodes, or node groups, differ; `shapes`: kinds of pods, or pods of the expander's request."""

    nodes: int
    kinds: int
    shapes: int
    is_expander: bool = False


def seconds(task: Task) -> float:
    """Of the processor, for the quickest of some calls."""
    return _child.asked(__spec__.name, task)["seconds"]


def _measured(task: Task) -> dict[str, float]:
    engine = Engine()
    if not engine.warm():
        raise RuntimeError("numba is not there; `make install` brings it")
    return {"seconds": _quickest(_expanding(task, engine) if task.is_expander else _counting(task, engine))}


def _quickest(call: Callable[[], object]) -> float:
    found = []
    for _ in range(RUNS):
        gc.collect()
        started = time.process_time()
        call()
        found.append(time.process_time() - started)
    return min(found)


def _counting(task: Task, engine: Engine) -> Callable[[], object]:
    described = Cluster(nodes=task.nodes)
    for number in range(task.nodes):
        node = described.node(number)
        engine.apply(NodeSeen(node))
        topology = described.topology(number % task.kinds)
        engine.apply(ReportSeen(structs.replace(topology, node=node.metadata.name), 0.0))
    shapes = [engine.shape(described.pod(number, number)) for number in range(task.shapes)]
    if not all(each.total for each in count.count(engine, shapes)):
        raise RuntimeError("a shape that fits nowhere measures nothing")
    return lambda: count.count(engine, shapes)


def _expanding(task: Task, engine: Engine) -> Callable[[], object]:
    described = Cluster(nodes=task.nodes)
    nodes = [{"key": f"group-{number}", "value": _node(described, number, task)} for number in range(task.nodes)]
    pods = [_pod(number) for number in range(task.shapes)]
    options = [{"group": each["key"], "count": 3, "pod_bytes": pods} for each in nodes]
    body = protobuf.encode_message({"options": options, "node_bytes": nodes}, REQUEST)
    expander = Expander(clusters.Cluster(engine, ClusterState()), Settings())
    loop = asyncio.new_event_loop()

    def answered() -> object:
        return loop.run_until_complete(expander.best_options(expandermessages.decode_request(body)))

    if not answered():
        raise RuntimeError("groups that help no pod measure nothing")
    return answered


def _node(described: Cluster, number: int, task: Task) -> bytes:
    topology = encode(normalise.encode(described.topology(number % task.kinds))).decode()
    offered = described.node(number).allocatable
    tree: dict[str, Any] = {
        "metadata": {"name": f"group-{number}", "annotations": protobuf.entries({templates.TOPOLOGY: topology})},
        "status": {"allocatable": [{"key": name, "value": {"text": str(each)}} for name, each in offered.items()]},
    }
    return protobuf.encode_message(tree, NODE)


def _pod(number: int) -> bytes:
    asked = [{"key": "cpu", "value": {"text": str(1 + number % 10)}}, {"key": "memory", "value": {"text": "1Gi"}}]
    own = {"limits": asked, "requests": asked}
    tree = {"metadata": {"name": f"pod-{number}"}, "spec": {"containers": [{"name": "main", "resources": own}]}}
    return protobuf.encode_message(tree, POD)


if __name__ == "__main__":
    _child.answer(Task, _measured)
