"""Pods that the scheduler's own choice places per second on one cluster, measured in a process of its own.

The path is the product's: `scheduler.choose` under the default profile, `Engine.place`, and the pod assumed on its
node; without queue, network and binding. `engine` starts one process for every cluster, with machine code and without.
Every way of asking gets a scheduler that has placed nothing yet. Objects are made beforehand and share their equal
parts, as informers leave them. Time is the processor's."""

import time
from collections.abc import Callable, Sequence
from random import Random

from msgspec import Struct

from benchmarks import _child
from benchmarks._cluster import Cluster
from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.sharing import SharedPods
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.process import tasks
from numalign.scheduler import main
from numalign.scheduler.choose import choose, cluster
from numalign.scheduler.choose.choose import Attempt, Chosen
from numalign.scheduler.choose.plugins import Plugins

SHAPES = 50
PODS_PER_NODE = 6
"""As many as fit with room to spare, whatever they ask for."""
PATIENCE = 3.0
"""Seconds after which a measurement has enough."""

Objects = Sequence[tuple[Node, NodeResourceTopology]]


class Task(Struct, frozen=True, kw_only=True):
    """`ways`: keys of `WAYS`."""

    cluster: Cluster
    compiled: bool
    ways: tuple[str, ...]


def rates(cluster: Cluster, ways: Sequence[str], *, compiled: bool) -> dict[str, float]:
    """Pods per second, by way of asking."""
    return _child.asked(__spec__.name, Task(cluster=cluster, compiled=compiled, ways=tuple(ways)))


class Placer:
    """The scheduler's choice and placement on one cluster."""

    def __init__(self, objects: Objects, *, compiled: bool = False) -> None:
        world = ClusterState()
        self.engine = Engine()
        if compiled and not self.engine.warm():
            raise RuntimeError("numba is not there; `make install` brings it")
        self.cluster = cluster.Cluster(self.engine, world)
        self._profile, self._rng = Plugins(world).profile(main.defaults().profiles[0]), Random(1)
        for node, topology in objects:
            self.cluster.node(node)
            self.cluster.report(topology, 0.0)

    def place(self, pod: Pod) -> Pod:
        """The pod on its node."""
        attempt = Attempt(pod=pod, shape=self.engine.shape(pod), now=0.0)
        found = choose.choose(attempt, self._profile, self.cluster, self._rng)
        if not isinstance(found, Chosen):
            raise RuntimeError(f"{pod.metadata.name} found no node: there are too few to measure")
        return self.cluster.assume(pod, found.decision)


def objects(made: Cluster) -> Objects:
    return [(node, normalise.encode(topology)) for node, topology in made.described()]


def repeated(made: Cluster, placer: Placer) -> float:
    """Pods of one shape."""
    return rate(placer, made.pods(range(min(20_000, PODS_PER_NODE * made.nodes)), 1), 10)


def turns(made: Cluster, placer: Placer) -> float:
    """Fifty shapes that take turns."""
    return rate(placer, made.pods(range(60 * SHAPES), SHAPES), 2 * SHAPES)


def new(made: Cluster, placer: Placer) -> float:
    """Every pod has a shape that was never asked for."""
    return rate(placer, made.pods(range(1000), 0), 10)


WAYS: dict[str, Callable[[Cluster, Placer], float]] = {each.__name__: each for each in (repeated, turns, new)}


def rate(placer: Placer, pods: Sequence[Pod], warm: int) -> float:
    """Pods per second, the first ones not counted, nor what making the cluster left to the garbage collector."""
    sharing = SharedPods()
    pods = [sharing.shared(pod) for pod in pods]
    for pod in pods[:warm]:
        placer.place(pod)
    # As the process does once it knows its world.
    tasks.settle()
    done, started = 0, time.process_time()
    for pod in pods[warm:]:
        placer.place(pod)
        done += 1
        if time.process_time() - started > PATIENCE:
            break
    return done / (time.process_time() - started)


def measure(task: Task) -> dict[str, float]:
    known = objects(task.cluster)
    return {way: WAYS[way](task.cluster, Placer(known, compiled=task.compiled)) for way in task.ways}


if __name__ == "__main__":
    _child.answer(Task, measure)
