"""How many pods per second does the scheduler place in process, beside the floors of the stock scheduler's benchmark?

The workloads are scheduler_perf's at 5,000 nodes, and the peer is the number that scheduler_perf has to reach in its
own runs (kube-scheduler spec 8.2): six cores, with API server and etcd beside. Ours is one core without a network, by
the processor's time. Then how each grows from 1,000 to 15,000 nodes, and what the process costs while it does nothing.
NODES=1000 makes everything smaller for a quick look, WORKLOADS=basic,mixed leaves the others out."""

import os
from collections.abc import Iterator
from typing import Final

from benchmarks import _footprint, _inprocess, table
from benchmarks._workloads import NODES, WORKLOADS, Workload

SIZE: Final = int(os.environ.get("NODES", str(NODES)))
CHOSEN: Final = os.environ.get("WORKLOADS", ",".join(WORKLOADS)).split(",")
FEW_NODES, MANY_NODES = SIZE // 5, SIZE * 3
PODS_FOR_GROWTH: Final = 1000
SAME_AT_ANOTHER_SIZE: Final = ("basic-50000", "unschedulable-20000")
MOST_BYTES: Final = 600e6
MOST_IDLE: Final = 0.02


def rows() -> Iterator[table.Row]:
    for name in CHOSEN:
        workload = WORKLOADS[name]
        yield from throughput(workload if SIZE == NODES else workload.sized(SIZE * workload.nodes // NODES, 10_000))
    for name in CHOSEN:
        if name not in SAME_AT_ANOTHER_SIZE:
            yield growth(WORKLOADS[name])
    yield from footprint()


def throughput(workload: Workload) -> Iterator[table.Row]:
    yield table.Row(
        name=f"scheduling: {workload.words}",
        ours=_inprocess.rate(workload),
        peer=workload.floor,
        unit="pods/s",
        goal=workload.goal,
        higher_is_better=True,
    )


def growth(workload: Workload) -> table.Row:
    """A pod with fifteen times the nodes, beside fifteen times what it takes with few."""
    few, many = (1 / _inprocess.rate(workload.sized(nodes, PODS_FOR_GROWTH)) for nodes in (FEW_NODES, MANY_NODES))
    title = f"scheduling: {workload.words}, a pod with {FEW_NODES:,} nodes, then {MANY_NODES:,}"
    return table.Row(name=title, ours=many * 1e6, peer=MANY_NODES / FEW_NODES * few * 1e6, unit="us")


def footprint() -> Iterator[table.Row]:
    found = _footprint.measured(SIZE, 10 * SIZE)
    title = f"scheduling: {SIZE:,} nodes, {10 * SIZE:,} pods"
    yield table.Row(name=f"{title}, memory of the process", ours=found["bytes"] / 1e6, peer=MOST_BYTES / 1e6, unit="MB")
    yield table.Row(name=f"{title}, idle", ours=100 * found["share"], peer=100 * MOST_IDLE, unit="% of a core")
