"""What an engine costs besides placing: memory, its first placement, and facts about nodes that are already known.

Each is measured in a process of its own. Reports count from the object on, decoded already; rows that changed are read
into the columns within the time, verdicts of shapes are not: that is the next placement's. It is the processor's time,
for a few hundredths of a second pass differently on a machine that others use, too."""

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, structs

from benchmarks import _agentnodes, _child
from benchmarks._cluster import Cluster
from benchmarks._decisions import Placer, objects
from numalign.api.objects.pod import Pod
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import Fact, NodeSeen, PodGone, PodSeen, ReportSeen

LIVE_SHAPES = 100
CHANGED_ROWS = 500


class Task(Struct, frozen=True, kw_only=True):
    """`begun`: when the parent started this process, by the steady clock."""

    what: str
    cluster: Cluster
    begun: float


def measured(what: str, cluster: Cluster) -> dict[str, float]:
    """One of `MEASURES`."""
    return _child.asked(__spec__.name, Task(what=what, cluster=cluster, begun=time.monotonic()))


def memory(task: Task) -> dict[str, float]:
    """Bytes: `all` is what the process grew by, `columns` the arrays alone."""
    before, engine = resident(), Engine()
    for node, topology in task.cluster.described():
        engine.apply(NodeSeen(node))
        engine.apply(ReportSeen(topology, 0.0))
    engine.survey(engine.shape(task.cluster.pod(0, 0)))
    gc.collect()
    return {"all": resident() - before, "columns": engine.columns.nbytes}


def cold_start(task: Task) -> dict[str, float]:
    """Seconds from the start of the process to its first placement, in plain Python; objects are made before."""
    making = time.monotonic()
    known = objects(task.cluster)
    made = time.monotonic()
    Placer(known).place(task.cluster.pod(0, 0))
    return {"seconds": time.monotonic() - task.begun - (made - making)}


def report(task: Task) -> dict[str, float]:
    """Seconds per changed row."""
    engine, _ = lived_in(task.cluster)
    later = structs.replace(task.cluster, seed=task.cluster.seed + 1)
    return changed(engine, [ReportSeen(later.topology(number), 1.0) for number in range(CHANGED_ROWS)])


def agent_report(task: Task) -> dict[str, float]:
    """Seconds per changed row: our own agent's reports, each with one pod more than the last one had."""
    engine, _ = lived_in(task.cluster)
    nodes = [_agentnodes.seen(task.cluster, number) for number in range(CHANGED_ROWS)]
    for node in nodes:
        engine.apply(ReportSeen(_agentnodes.decoded(node.before), 1.0))
        for pod in node.pods:
            engine.apply(PodSeen(pod, 1.0))
    return changed(engine, [ReportSeen(_agentnodes.decoded(node.after), 2.0) for node in nodes])


def deletion(task: Task) -> dict[str, float]:
    """Seconds per changed row: running pods whose objects are deleted, each on a node of its own."""
    engine, bound = lived_in(task.cluster)
    by_node = {pod.spec.node_name: pod for pod in bound}
    return changed(engine, [PodGone(pod, 1.0) for pod in list(by_node.values())[:CHANGED_ROWS]])


MEASURES: dict[str, Callable[[Task], dict[str, float]]] = {
    each.__name__: each for each in (memory, cold_start, report, agent_report, deletion)
}


def lived_in(cluster: Cluster) -> tuple[Engine, Sequence[Pod]]:
    """An engine that has placed pods of as many shapes as there shall be, and the pods, bound and running."""
    placer, bound = Placer(objects(cluster), compiled=True), list[Pod]()
    for pod in cluster.pods(range(2 * CHANGED_ROWS), LIVE_SHAPES):
        placed = placer.place(pod)
        bound.append(structs.replace(placed, status=structs.replace(pod.status, phase="Running")))
        placer.engine.apply(PodSeen(bound[-1], 0.0))
    return placer.engine, bound


def changed(engine: Engine, facts: Sequence[Fact]) -> dict[str, float]:
    flavour = engine.flavour
    assert isinstance(flavour, ExactFlavour), "the default one"
    flavour.mirror.refresh()

    gc.collect()
    gc.disable()
    started = time.process_time()
    for fact in facts:
        engine.apply(fact)
        flavour.mirror.refresh()
    return {"seconds": (time.process_time() - started) / len(facts)}


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def measure(task: Task) -> dict[str, float]:
    return MEASURES[task.what](task)


if __name__ == "__main__":
    _child.answer(Task, measure)
