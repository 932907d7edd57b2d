"""How long does it take to count how many more pods of 50 shapes 5,000 nodes admit?  Limit: 50 ms with machine code.

The call is the product's, for all nodes and shapes at once, as `POST /v1/capacity` makes it. In a cluster many nodes
read the same, and such nodes are counted once; in the row with nodes that are all different each one is counted. The
expander's row is a BestOptions request of cluster-autoscaler from its bytes to the chosen groups. Time is the
processor's. NODES=1000 makes everything smaller for a quick look; the limits are meant for 5,000."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks import _capacity, table
from benchmarks._capacity import Task

NODES = int(os.environ.get("NODES", "5000"))
SHAPES = 50
GROUPS, PODS = 100, 100
MOST_SECONDS = 0.05
KINDS = (20, 500)
"""Of nodes that read the same."""


def rows() -> Iterator[table.Row]:
    if find_spec("numba") is None:
        print("capacity: left out without numba; `make install` brings it", file=sys.stderr)
        return
    for kinds in KINDS:
        found = _capacity.seconds(Task(nodes=NODES, kinds=kinds, shapes=SHAPES))
        yield limited(f"{NODES:,} nodes of {kinds} kinds x {SHAPES} shapes", found)
    every = _capacity.seconds(Task(nodes=NODES, kinds=NODES, shapes=SHAPES))
    yield limited(f"{NODES:,} nodes, all different, x {SHAPES} shapes", every)
    groups = _capacity.seconds(Task(nodes=GROUPS, kinds=20, shapes=PODS, is_expander=True))
    yield limited(f"expander, {GROUPS} groups x {PODS} pods", groups)


def limited(name: str, seconds: float) -> table.Row:
    return table.Row(name=f"capacity: {name}", ours=seconds * 1e3, peer=MOST_SECONDS * 1e3, unit="ms")
