"""A new shape is held against all rows at once, with the answers that rows give one by one, whatever came before."""

from importlib.util import find_spec
from random import Random

import numpy as np
import pytest

from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import Policy, TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.placement.columns import nodetotals
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import NodeGone, NodeSeen, ReportSeen
from numalign.placement.verdicts.verdicts import Verdicts
from tests.campaigns import campaign
from tests.conftest import require
from tests.placing import KERNELS
from tests.unit.kubelet import made
from tests.unit.placement import choices

NODES = 300
MOST = {"cpu": 16, "memory": 1 << 20, made.NIC: 4}
MOSTLY: Policy = "single-numa-node"
OTHERS: tuple[Policy, ...] = ("restricted", "best-effort")


def show(engine: Engine, rng: Random, name: str) -> None:
    """A node with two zones, anything between empty and full."""
    offered = {resource: quantity.of(2 * most) for resource, most in MOST.items()} | {"pods": quantity.of(9)}
    engine.apply(NodeSeen(Node(metadata=ObjectMeta(name=name), status=NodeStatus(offered, offered))))
    manager = TopologyManager(policy=MOSTLY if rng.random() < 0.8 else rng.choice(OTHERS), scope="container")
    zones = tuple(Zone(id=zone, resources=amounts(rng)) for zone in range(2))
    engine.apply(ReportSeen(NodeTopology(node=name, manager=manager, zones=zones), 0.0))


def amounts(rng: Random) -> dict[str, Amounts]:
    units = {resource: most * (1000 if resource == "cpu" else 1) for resource, most in MOST.items()}
    return {each: Amounts(most, most, rng.randint(0, 16) * most // 16) for each, most in units.items()}


def drawn(rng: Random, name: str) -> Pod:
    count = rng.randint(1, 3)
    asked = [(rng.randint(1, 6), rng.randint(1, 1 << 18)) for _ in range(count)]
    each = (made.container(f"c{number}", cpu, memory, nic=1) for number, (cpu, memory) in enumerate(asked))
    return made.pod(name, *each)


def check(engine: Engine, shape: Shape) -> None:
    flavour, columns = engine.flavour, engine.columns
    assert isinstance(flavour, ExactFlavour)
    flavour.mirror.refresh()
    table, other = (Verdicts(columns, flavour.evaluation, most=1) for _ in range(2))
    surveyed, asked = table.table(shape), other.find(shape)
    for row in range(columns.height):
        flavour.evaluation.survey(asked, np.array([row], np.int32))
    codes = asked.codes[: columns.height].tolist()
    assert surveyed.codes[: columns.height].tolist() == codes
    full = [row for row in columns.rows.values() if not nodetotals.fits_row(columns, row, surveyed.totals)]
    assert [row for row, code in enumerate(codes) if code == Code.TOTALS] == sorted(full)
    fitting = [row for row, code in enumerate(codes) if code > 0 and not columns.loose[row]]
    assert surveyed.masks[fitting].tolist() == asked.masks[fitting].tolist()


def check_followed(engine: Engine, shape: Shape) -> None:
    """A table that is looked at now and then says what one made from nothing says."""
    flavour, columns = engine.flavour, engine.columns
    assert isinstance(flavour, ExactFlavour)
    flavour.mirror.refresh()
    kept, fresh = flavour.table(shape), Verdicts(columns, flavour.evaluation, most=1).table(shape)
    codes = fresh.codes[: columns.height].tolist()
    assert kept.codes[: columns.height].tolist() == codes
    fitting = [row for row, code in enumerate(codes) if code > 0 and not columns.loose[row]]
    assert kept.masks[fitting].tolist() == fresh.masks[fitting].tolist()


def history(engine: Engine, rng: Random) -> None:
    """Rows change between surveys: by pods, by other reports, by nodes that come and go."""
    names = [f"n{number}" for number in range(NODES)]
    for name in names:
        show(engine, rng, name)
    followed = engine.shape(drawn(rng, "followed"))
    for number in range(8):
        pod = drawn(rng, f"p{number}")
        choices.chosen(engine, pod, rng)
        for name in (*rng.sample(names, 5), f"new{number}"):
            show(engine, rng, name)
        engine.apply(NodeGone(rng.choice(names)))
        check(engine, engine.shape(pod))
        check_followed(engine, followed)


@pytest.mark.parametrize("count", [pytest.param(1, id="quick"), campaign(1)])
@KERNELS
def test_all_rows_at_once_answer_as_one_by_one(compiled: bool, count: int) -> None:
    if compiled:
        require(find_spec("numba"), "numba, as `make install` brings it")
    for seed in range(count):
        engine = Engine()
        assert not compiled or engine.warm()
        history(engine, Random(seed))
