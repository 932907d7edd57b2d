"""However it came about, the engine's state is what the facts make of it: nothing drifts, and speed changes nothing."""

from random import Random

import numpy as np
import pytest

from numalign.placement.columns.columns import Columns
from numalign.placement.decisions import Code, Decision
from numalign.placement.exact import ExactFlavour
from numalign.placement.verdicts.verdicts import Verdicts
from tests.campaigns import campaign
from tests.placing import Placing
from tests.unit.placement import clusters
from tests.unit.scheduler.test_admitted import Story

MIRRORED = (
    *("free", "settled", "size", "allocatable", "homeless", "homeless_size", "full_core_cpus"),
    *("kind", "cells", "busy", "split_known", "loose", "pending_shape"),
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
    """Tables that followed the change log equal tables computed from scratch, where no other knowledge exists."""
    flavour = story.flavour
    for shape in story.placing.engine.shapes.all.values():
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


def replicas_placed(seed: int, *, compiled: bool) -> list[Decision | None]:
    """Batches of replicas, one shape after the other, with a pod that another scheduler bound now and then."""
    rng, placing = Random(seed), Placing(compiled=compiled)
    nodes = {name: clusters.node(rng, name) for name in ("a", "b", "c")}
    for node in nodes.values():
        placing.node(node.node)
        placing.report(node.topology)
    rng, made = Random(seed + 1), list[Decision | None]()
    for batch in range(6):
        node = rng.choice(list(nodes.values()))
        drawn = rng.random()
        pods = [clusters.pod(Random(drawn), f"p{batch}-{number}", node.wishes) for number in range(rng.randint(1, 6))]
        made += [placing.place(pod, rng) for pod in pods]
        foreign = clusters.on_node(clusters.pod(rng, f"f{batch}", node.wishes), node.name)
        placing.cluster.pod(foreign, 0.0)
    flavour = placing.engine.flavour
    assert isinstance(flavour, ExactFlavour)
    check_rows(flavour)
    return made


@pytest.mark.parametrize("count", [pytest.param(30, id="quick"), campaign(30)])
def test_machine_code_decides_as_python_does(count: int) -> None:
    for seed in range(count):
        assert replicas_placed(seed, compiled=True) == replicas_placed(seed, compiled=False)
