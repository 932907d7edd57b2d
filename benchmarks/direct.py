"""How many pods per second does the scheduler's choice place on nodes in direct mode, beside nodes in predict mode?

The path is the product's, as in `engine`: all rules of the default profile, zones and placement, over all nodes. The
peer is our own predict mode on the same nodes with the same pods; direct mode may take twice as long, because it
chooses CPUs and devices by id. NODES=1000 makes it smaller for a quick look; the goal is meant for 5,000."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks import _decisions, _directnodes, table
from benchmarks._cluster import Cluster

NODES = int(os.environ.get("NODES", "5000"))
WAYS = {"repeated": "one shape", "turns": "50 shapes in turn", "new": "every pod a new shape"}
GOAL = 0.5


def rows() -> Iterator[table.Row]:
    compiled = find_spec("numba") is not None
    for containers in (1, 4):
        cluster = Cluster(nodes=NODES, containers=containers)
        direct = _directnodes.rates(cluster, tuple(WAYS), compiled=compiled)
        predict = _decisions.rates(cluster, tuple(WAYS), compiled=compiled)
        for way, words in WAYS.items():
            yield table.Row(
                name=f"direct: 2 zones x {containers}, {words}",
                ours=direct[way],
                peer=predict[way],
                unit="pods/s",
                goal=GOAL if way == "repeated" else 0.0,
                higher_is_better=True,
            )
