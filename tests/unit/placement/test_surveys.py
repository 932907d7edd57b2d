"""A new shape is held against all rows at once, with the answers that rows give one by one, whatever came before."""

from importlib.util import find_spec
from random import Random

import pytest
from msgspec import structs

from numalign.placement import kernels
from numalign.placement.engine import Engine
from numalign.placement.exactflavour import ExactFlavour
from numalign.placement.facts import NodeGone, NodeSeen, PodSeen, ReportSeen
from numalign.placement.shapes import Shape
from numalign.placement.verdicts import Verdicts
from tests.campaigns import campaign
from tests.conftest import require
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode

NODES = 70
"""More than are looked at side by side."""


def show(engine: Engine, node: ModelNode, name: str) -> None:
    seen = node.node
    engine.apply(NodeSeen(structs.replace(seen, metadata=structs.replace(seen.metadata, name=name))))
    engine.apply(ReportSeen(structs.replace(node.topology, node=name), 0.0))


def check(engine: Engine, shape: Shape) -> None:
    flavour, columns = engine.flavour, engine.columns
    assert isinstance(flavour, ExactFlavour)
    flavour.mirror.refresh()
    table, other = (Verdicts(columns, flavour.evaluation, most=1) for _ in range(2))
    surveyed, asked = table.table(shape), other.find(shape)
    for row in range(columns.height):
        code = flavour.evaluation.row(asked, row)
        assert surveyed.codes[row] == code
        if code > 0 and not columns.loose[row]:
            assert surveyed.masks[row].tolist() == asked.masks[row].tolist()


def history(seed: int, engine: Engine) -> None:
    """Rows change between surveys: by pods, by other reports, by nodes that come and go."""
    rng = Random(seed)
    models = [clusters.node(rng, f"m{number}") for number in range(3)]
    names = [f"n{number}" for number in range(NODES)]
    for name in names:
        show(engine, rng.choice(models), name)
    for number in range(8):
        model = rng.choice(models)
        pod = clusters.pod(rng, f"p{number}", model.wishes)
        engine.decide(pod, 0.0, rng)
        engine.apply(PodSeen(clusters.on_node(clusters.pod(rng, f"f{number}", model.wishes), rng.choice(names)), 0.0))
        show(engine, rng.choice(models), rng.choice([*names, f"new{number}"]))
        engine.apply(NodeGone(rng.choice(names)))
        check(engine, engine.shape(pod))


@pytest.mark.parametrize("count", [pytest.param(3, id="quick"), campaign(3)])
@pytest.mark.parametrize("fast", [False, True], ids=["numpy", "compiled"])
def test_all_rows_at_once_answer_as_one_by_one(fast: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if fast:
        require(find_spec("numba"), "numba, as `make fast` installs it")
    else:
        monkeypatch.setattr(kernels, "_compiled", None)
    for seed in range(count):
        engine = Engine()
        assert not fast or engine.warm()
        history(seed, engine)
