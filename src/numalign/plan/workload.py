"""The pods of one run in the order of their arrival, and what pods are typical of a list.

`replay` calls `arrivals` and `typical`. Both follow the published protocol (FGD, USENIX ATC'23): the pods of the list
are shuffled, pods drawn from the list are added (or pods of it removed) until they ask for 130 % of all GPUs, and the
shapes that make up 95 % of the list are typical. With the same seed the order is that of the published runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from numalign.plan.gorandom import GoRandom
from numalign.plan.trace import WHOLE, Trace, TracePod

DEMAND: Final = 1.3
"""What all pods ask for, as a part of all GPUs."""
POPULAR: Final = 0.95
CPU: Final = 1000
WATCHES: Final = 10
"""Of the published program: each draws the time after which it ends, before the order of the nodes is drawn."""


class Shape(Struct, frozen=True, order=True):
    """What a pod asks for, without its name; the order is that of `structs.astuple`."""

    cpu_milli: int
    gpu_milli: int
    gpus: int
    models: tuple[str, ...]
    memory_mib: int = 0


class Arrivals(Struct, frozen=True):
    """Distinct shapes, and by pod the number of its shape."""

    shapes: tuple[Shape, ...]
    pods: tuple[int, ...]
    nodes: tuple[int, ...]
    """The order of the nodes: of equally good ones the first is taken."""


def shape_of(pod: TracePod) -> Shape:
    return Shape(pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models, pod.memory_mib)


def whole_gpus(trace: Trace) -> Trace:
    """The trace without the pods that ask for a part of a GPU, which a kubelet does not know."""
    return structs.replace(trace, pods=tuple(pod for pod in trace.pods if not pod.is_share))


def with_whole_cpus(trace: Trace) -> Trace:
    """The trace with CPUs rounded up to whole ones, as static CPU managers pin them."""
    pods = (structs.replace(pod, cpu_milli=-(-pod.cpu_milli // CPU) * CPU) for pod in trace.pods)
    return structs.replace(trace, pods=tuple(pods))


def with_some_nodes(trace: Trace, count: int, seed: int) -> Trace:
    """The trace with so many of its nodes, in their order."""
    chosen = GoRandom(seed).permutation(len(trace.nodes))[:count]
    return structs.replace(trace, nodes=tuple(trace.nodes[node] for node in sorted(chosen)))


def arrivals(trace: Trace, seed: int) -> Arrivals:
    """The pods of one run."""
    random, listed = GoRandom(seed), sorted(trace.pods, key=_name)
    # The published program draws one number for its log before it shuffles.
    random.int63()
    pods = list(listed)

    def swap(one: int, other: int) -> None:
        pods[one], pods[other] = pods[other], pods[one]

    random.shuffle(len(pods), swap)
    wanted, asked = DEMAND * (trace.gpus * WHOLE), sum(pod.total_gpu_milli for pod in pods)
    while asked > wanted:
        asked -= pods.pop(random.below(len(pods))).total_gpu_milli
    # The published program leaves a list that had to be cut as it is.
    if len(pods) == len(listed) and asked < wanted and any(pod.gpus for pod in listed):
        pods += _drawn(listed, wanted - asked, random.below)
    shapes: dict[Shape, int] = {}
    numbers = tuple(shapes.setdefault(shape_of(pod), len(shapes)) for pod in pods)
    for _ in range(WATCHES):
        random.int63()
    order = random.permutation(len(trace.nodes))
    by_name = sorted(range(len(trace.nodes)), key=lambda node: trace.nodes[node].name)
    nodes = [0] * len(order)
    for node, place in zip(by_name, order, strict=True):
        nodes[place] = node
    return Arrivals(tuple(shapes), numbers, tuple(nodes))


def typical(trace: Trace) -> tuple[tuple[Shape, float], ...]:
    """Shapes with their share of pods, the most frequent first. Memory is not looked at."""
    counts = Counter(structs.replace(shape_of(pod), memory_mib=0) for pod in trace.pods)
    ranked = sorted(counts.items(), key=lambda each: (each[1], structs.astuple(each[0])), reverse=True)
    wanted, found, covered = POPULAR * len(trace.pods), list[tuple[Shape, int]](), 0
    while covered < wanted:
        found.append(ranked[len(found)])
        covered += found[-1][1]
    return tuple((shape, count / covered) for shape, count in found)


def _drawn(listed: Sequence[TracePod], missing: float, below: Callable[[int], int]) -> list[TracePod]:
    """Pods until the next one asks for too much. As published, one GPU of a pod is compared, and all are counted."""
    found: list[TracePod] = []
    while True:
        pod = listed[below(len(listed))]
        if pod.gpu_milli > missing:
            return found
        found.append(pod)
        missing -= pod.total_gpu_milli


def _name(pod: TracePod) -> str:
    return pod.name
