"""However it came about, the engine's state is what the facts make of it: nothing drifts, and speed changes nothing."""

from importlib.util import find_spec
from random import Random

import numpy as np
import pytest

from numalign.placement.columns.columns import Columns
from numalign.placement.decisions import Code, Decision
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import NodeSeen, PodSeen, ReportSeen
from numalign.placement.settings import Settings
from numalign.placement.verdicts.verdicts import Verdicts
from tests.campaigns import campaign
from tests.conftest import require
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode
from tests.unit.placement.test_admitted import Story

MIRRORED = (
    *("free", "settled", "size", "allocatable", "homeless", "homeless_size", "full_core_cpus"),
    *("kind", "cells", "busy", "split_known", "loose", "tenure"),
)


def snapshot(columns: Columns) -> dict[str, list[object]]:
    return {name: getattr(columns, name).tolist() for name in MIRRORED}


def check_rows(flavour: ExactFlavour) -> None:
    """Rows that were charged as decisions were made equal rows that are read from the ledger."""
    flavour.mirror.refresh()
    kept = snapshot(flavour.columns)
    flavour.mirror.read_again()
    assert kept == snapshot(flavour.columns)


def check_tables(story: Story) -> None:
    """Tables that followed the change log equal tables made from nothing, where nobody knows better."""
    flavour = story.flavour
    for shape in story.engine.shapes.all.values():
        kept = flavour.verdicts.table(shape).codes
        fresh = Verdicts(flavour.columns, flavour.evaluation, most=1).table(shape).codes
        known = kept != Code.NOT_CERTAIN
        assert np.array_equal(kept[known], fresh[known])


@pytest.mark.parametrize("count", [pytest.param(10, id="quick"), campaign(10)])
def test_after_any_history_rows_and_tables_equal_those_made_from_nothing(count: int) -> None:
    for seed in range(count):
        story = Story(seed + 7_000)
        story.tell(most=20)
        check_rows(story.flavour)
        check_tables(story)


def cluster(seed: int, *, fast: bool) -> tuple[Engine, dict[str, ModelNode]]:
    rng, engine = Random(seed), Engine(Settings())
    nodes = {name: clusters.node(rng, name) for name in ("a", "b", "c")}
    for node in nodes.values():
        engine.apply(NodeSeen(node.node))
        engine.apply(ReportSeen(node.topology, 0.0))
    if fast:
        assert engine.warm()
    return engine, nodes


def replicas_placed(seed: int, *, fast: bool = False, singly: bool = False) -> list[Decision]:
    """Batches of replicas, one shape after the other, with a pod of somebody else's now and then."""
    engine, nodes = cluster(seed, fast=fast)
    rng, made = Random(seed + 1), list[Decision]()
    for batch in range(6):
        node = rng.choice(list(nodes.values()))
        drawn = rng.random()
        pods = [clusters.pod(Random(drawn), f"p{batch}-{number}", node.wishes) for number in range(rng.randint(1, 6))]
        if singly:
            made += [engine.decide(pod, 0.0, rng, engine.shape(pod)) for pod in pods]
        else:
            made += engine.decide_many(pods, 0.0, rng)
        foreign = clusters.on_node(clusters.pod(rng, f"f{batch}", node.wishes), node.name)
        engine.apply(PodSeen(foreign, 0.0))
    assert isinstance(engine.flavour, ExactFlavour)
    check_rows(engine.flavour)
    return made


@pytest.mark.parametrize("count", [pytest.param(30, id="quick"), campaign(30)])
def test_replicas_are_decided_together_as_they_are_one_by_one(count: int) -> None:
    for seed in range(count):
        assert replicas_placed(seed) == replicas_placed(seed, singly=True)


@pytest.mark.parametrize("count", [pytest.param(30, id="quick"), campaign(30)])
def test_machine_code_decides_as_python_does(count: int) -> None:
    require(find_spec("numba"), "numba, as `make fast` installs it")
    for seed in range(count):
        assert replicas_placed(seed, fast=True) == replicas_placed(seed, fast=False)


@pytest.mark.parametrize("count", [pytest.param(10, id="quick"), campaign(10)])
def test_machine_code_decides_pods_that_come_alone_as_python_does(count: int) -> None:
    require(find_spec("numba"), "numba, as `make fast` installs it")
    for seed in range(count):
        assert replicas_placed(seed, fast=True, singly=True) == replicas_placed(seed, singly=True)


# The last pod of a batch left its row to the row model.
@pytest.mark.parametrize("seed", [222, 225])
def test_machine_code_may_stop_after_the_last_pod(seed: int) -> None:
    require(find_spec("numba"), "numba, as `make fast` installs it")
    assert replicas_placed(seed, fast=True) == replicas_placed(seed, fast=False)
