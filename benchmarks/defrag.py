"""How long does it take to plan room for 41 jobs of 10 pods on 500 nodes of two zones?  Limits: 2 s; 1 s for a proof.

Nodes have eight GPUs, four in each zone. They were filled with pods of one GPU, of which about six in ten have ended. A
pod of a job needs all four GPUs of a zone, so that other pods have to move first. The plan is whole: found, rehearsed
step by step by the scheduler's engine, and described. The second row asks for more GPUs than are free; the third one
for more zones than the pods that stay leave. NVIDIA's KAI publishes 455 s for its consolidation of 41 jobs and 249 s
for its negative answer on as many nodes, of its own scenario. Time is the processor's."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks import _defrag, table
from benchmarks._defrag import Task

NODES = 500
PODS = 41 * 10
MOST_SECONDS, MOST_FOR_A_PROOF = 2.0, 1.0


def rows() -> Iterator[table.Row]:
    if find_spec("numba") is None:
        print("defrag: left out without numba; `make install` brings it", file=sys.stderr)
        return
    yield limited("room for 41 jobs of 10 pods", Task(nodes=NODES, pods=PODS, verdict="found"), MOST_SECONDS)
    yield limited("more than is free", Task(nodes=NODES, pods=4 * NODES, verdict="impossible"), MOST_FOR_A_PROOF)
    staying = Task(nodes=NODES, pods=PODS, verdict="impossible", movable=False)
    yield limited("pods that stay are in the way", staying, MOST_FOR_A_PROOF)


def limited(name: str, task: Task, most: float) -> table.Row:
    return table.Row(name=f"defrag: {name}", ours=_defrag.seconds(task) * 1e3, peer=most * 1e3, unit="ms", goal=1.0)
