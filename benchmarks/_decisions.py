"""Decisions per second of one engine on one cluster, measured in a process of its own.

`engine` starts one for every cluster, with compiled kernels and without: once these are there, they serve the whole
process. Every way of asking gets an engine that nobody has asked yet. Objects are made beforehand; where a shape comes
again, pods bring theirs along, as they do in the scheduler."""

import gc
import time
from collections.abc import Callable, Sequence
from random import Random

from msgspec import Struct

from benchmarks import _child
from benchmarks._cluster import Cluster
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Decision
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen

BATCH = 500
SHAPES = 50
PODS_PER_NODE = 6
"""As many as fit with room to spare, whatever they ask for."""
PATIENCE = 3.0
"""Seconds after which a measurement has enough."""

Facts = Sequence[tuple[Node, NodeTopology]]
Deciding = Callable[[Sequence[Pod]], Sequence[Decision]]


class Task(Struct, frozen=True, kw_only=True):
    """`ways`: keys of `WAYS`; `most`: pods of one shape."""

    cluster: Cluster
    compiled: bool
    ways: tuple[str, ...]
    most: int


def rates(cluster: Cluster, ways: Sequence[str], *, compiled: bool, most: int = 60 * BATCH) -> dict[str, float]:
    """Decisions per second, by way of asking; batches are of `most` pods together, if there is room for them."""
    return _child.asked(__spec__.name, Task(cluster=cluster, compiled=compiled, ways=tuple(ways), most=most))


class Asker:
    """One engine and the pods for it."""

    def __init__(self, cluster: Cluster, facts: Facts, most: int) -> None:
        self.cluster = cluster
        self.most = most
        self.engine = filled(facts)
        self.rng = Random(cluster.seed)

    def batches(self) -> float:
        """One shape, many pods at a time."""
        return self._repeated(min(self.most, PODS_PER_NODE * self.cluster.nodes), BATCH)

    def singly(self) -> float:
        """One shape, pod by pod."""
        return self._repeated(3000, 1)

    def turns(self) -> float:
        """Fifty shapes that take turns, pod by pod."""
        pods = self.cluster.pods(range(60 * SHAPES), SHAPES)
        shapes = [self.engine.shape(pod) for pod in pods[:SHAPES]]

        def decide(some: Sequence[Pod]) -> list[Decision]:
            pairs = zip(some, shapes, strict=True)
            return [self.engine.decide(pod, 0.0, self.rng, shape) for pod, shape in pairs]

        return rate(pods, SHAPES, decide)

    def new(self) -> float:
        """Every pod has a shape that nobody asked for before, which is found out in here."""
        return rate(self.cluster.pods(range(500), 0), 1, lambda some: self.engine.decide_many(some, 0.0, self.rng))

    def _repeated(self, count: int, batch: int) -> float:
        pods = self.cluster.pods(range(count), 1)
        shape = self.engine.shape(pods[0])
        return rate(pods, batch, lambda some: self.engine.decide_many(some, 0.0, self.rng, shape))


WAYS: dict[str, Callable[[Asker], float]] = {
    "batches": Asker.batches,
    "singly": Asker.singly,
    "turns": Asker.turns,
    "new": Asker.new,
}


def filled(facts: Facts) -> Engine:
    engine = Engine()
    for node, topology in facts:
        engine.apply(NodeSeen(node))
        engine.apply(ReportSeen(topology, 0.0))
    return engine


def rate(pods: Sequence[Pod], batch: int, decide: Deciding) -> float:
    """Pods per second, the first batch not counted, nor what making the cluster left to the garbage collector."""
    placed(decide(pods[:batch]))
    gc.collect()
    done, started = 0, time.perf_counter()
    for first in range(batch, len(pods), batch):
        done += placed(decide(pods[first : first + batch]))
        if time.perf_counter() - started > PATIENCE:
            break
    return done / (time.perf_counter() - started)


def placed(decisions: Sequence[Decision]) -> int:
    for decision in decisions:
        if decision.node is None:
            raise RuntimeError(f"{decision.uid} was refused ({decision.refused}): there are too few nodes to measure")
    return len(decisions)


def measure(task: Task) -> dict[str, float]:
    if task.compiled and not Engine().warm():
        raise RuntimeError("numba is not there; `make fast` installs it")
    facts = list(task.cluster.described())
    askers = ((way, Asker(task.cluster, facts, task.most)) for way in task.ways)
    return {way: WAYS[way](warmed(asker, compiled=task.compiled)) for way, asker in askers}


def warmed(asker: Asker, *, compiled: bool) -> Asker:
    if compiled:
        asker.engine.warm()
    return asker


if __name__ == "__main__":
    _child.answer(Task, measure)
