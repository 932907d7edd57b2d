"""How many pods per second does the scheduler's choice place, beside the reference plugin on the same nodes and pods?

The path is the product's: all rules of the default profile, zones and placement, over all nodes. The peer is
NodeResourceTopologyMatch v0.34.7 with its overReserve cache: Filter, Score and Reserve and nothing else of a scheduler,
over a sample of a tenth of the nodes as kube-scheduler takes it. The other rows hold a limit: growth, memory, the first
placement, changed nodes, and the compiled kernel row by row. NODES=1000 makes everything smaller for a quick look;
goals are meant for 5,000."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product

from benchmarks import _decisions, _kernelrows, _upkeep, table
from benchmarks._cluster import Cluster
from benchmarks._kernelrows import NOT_PREFERRED, ONE_ZONE, TWO_ZONES, Question
from benchmarks._peer import Peer

NODES = int(os.environ.get("NODES", "5000"))
SAMPLED_PODS, ALL_PODS = 40, 8


WAYS = {"repeated": "one shape", "turns": "50 shapes in turn", "new": "every pod a new shape"}
GOALS = {"repeated": 20_000.0, "new": 2_000.0}
"""Pods per second on nodes of 2 zones, pods of one container, with machine code."""
GROWTH = 1.5
TRIES = 3
"""An odd number."""
MEMORY = 500e6 / 50_000
"""Bytes per node of 8 zones and 16 resources."""
FIRST_PLACEMENT = 5.0
CHANGED_ROW = 100e-6
CHANGES = {"report": "report", "agent_report": "our own agent's report", "deletion": "deletion"}
KERNEL_ROWS = 5000


def rows() -> Iterator[table.Row]:
    peer = Peer()
    has_numba = find_spec("numba") is not None
    if not has_numba:
        print("engine: compiled kernels are left out; `make install` brings numba", file=sys.stderr)
    for zones, containers in product((2, 8), (1, 4)):
        cluster = Cluster(nodes=NODES, zones=zones, containers=containers)
        yield from throughput(cluster, peer, (True, False) if has_numba else (False,))
    yield from upkeep()
    if has_numba:
        yield growth()
        yield from kernels()


def throughput(cluster: Cluster, peer: Peer, kinds: tuple[bool, ...]) -> Iterator[table.Row]:
    """Beside the peer without a goal, or 0 in its place where there is none; then the rows that have a goal."""
    title = f"engine: {cluster.zones} zones x {cluster.containers}"
    sampled = peer.sampled(cluster, SAMPLED_PODS) if peer.there else 0.0
    if peer.there:
        yield faster(f"{title}, the peer itself over all nodes", peer.over_all(cluster, ALL_PODS), sampled, 0.0)
    for compiled in kinds:
        found = _decisions.rates(cluster, tuple(WAYS), compiled=compiled)
        for name, words in WAYS.items():
            yield faster(f"{title}, {words}, {'compiled' if compiled else 'plain Python'}", found[name], sampled, 0.0)
        for name in GOALS if compiled and (cluster.zones, cluster.containers) == (2, 1) else ():
            yield faster(f"{title}, {WAYS[name]}, goal", found[name], GOALS[name], 1.0)


def faster(name: str, ours: float, peer: float, goal: float) -> table.Row:
    return table.Row(name=name, ours=ours, peer=peer, unit="pods/s", goal=goal, higher_is_better=True)


def upkeep() -> Iterator[table.Row]:
    wide = Cluster(nodes=10 * NODES, zones=8, resources=16)
    kept = _upkeep.measured("memory", wide)
    for what, words in (("all", "everything kept"), ("columns", "columns alone")):
        title = f"engine: memory, {wide.nodes:,} nodes x 8 zones x 16 resources, {words}"
        yield table.Row(name=title, ours=kept[what] / 1e6, peer=MEMORY * wide.nodes / 1e6, unit="MB")
    for zones in (2, 8):
        cluster = Cluster(nodes=NODES, zones=zones)
        (started,) = _upkeep.measured("cold_start", cluster).values()
        yield table.Row(name=f"engine: {zones} zones, first placement", ours=started, peer=FIRST_PLACEMENT, unit="s")
        for what, words in CHANGES.items():
            (taken,) = _upkeep.measured(what, cluster).values()
            yield in_microseconds(f"{zones} zones, {words}, 100 live shapes", taken, CHANGED_ROW)


def growth() -> table.Row:
    """A pod of a known shape where there are fifty times as many nodes, beside what it may cost there.

    The median of some tries in turn, by how much one is of the other: a few thousand pods take no longer than what
    disturbs them."""
    small, large = (Cluster(nodes=nodes) for nodes in (NODES // 5, 10 * NODES))
    tries = [[_seconds(each) for each in (small, large)] for _ in range(TRIES)]
    few, many = sorted(tries, key=lambda each: each[1] / each[0])[TRIES // 2]
    return in_microseconds(f"a pod with {small.nodes:,} nodes, then {large.nodes:,}", many, GROWTH * few)


def _seconds(cluster: Cluster) -> float:
    return 1 / _decisions.rates(cluster, ("repeated",), compiled=True)["repeated"]


def kernels() -> Iterator[table.Row]:
    """At 8 zones; the first limit is a row of single-numa-node, times five."""
    single = _kernelrows.seconds(Question(policy="single-numa-node", parts=ONE_ZONE), KERNEL_ROWS)
    limits = {
        "restricted, one zone": (Question(policy="restricted", parts=ONE_ZONE), 5 * single),
        "restricted, two zones": (Question(policy="restricted", parts=TWO_ZONES), 1e-6),
        "best-effort, nothing preferred": (Question(policy="best-effort", parts=NOT_PREFERRED), 3e-6),
    }
    for name, (question, limit) in limits.items():
        yield in_microseconds(f"a row, {name}", _kernelrows.seconds(question, KERNEL_ROWS), limit)


def in_microseconds(name: str, ours: float, limit: float) -> table.Row:
    return table.Row(name=f"engine: {name}", ours=ours * 1e6, peer=limit * 1e6, unit="us")
