"""What was found out on one node serves others that look the same, and no others: each is as if it were alone."""

from __future__ import annotations

from random import Random

import pytest
from msgspec import structs

from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Holding
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import Fact, NodeSeen, PodSeen, ReportSeen
from tests.unit.placement import clusters
from tests.unit.placement.clusters import ModelNode

SEEDS = range(12)


def without_places(topology: NodeTopology) -> NodeTopology:
    """A report that leaves it to the model where pods are."""
    return structs.replace(topology, facts=structs.replace(topology.facts, placements=()))


def facts(name: str, node: ModelNode, pods: list[Pod]) -> list[Fact]:
    """The node under another name, with pods that another scheduler has bound there."""
    described = structs.replace(node.node, metadata=structs.replace(node.node.metadata, name=name))
    here = [
        structs.replace(
            pod,
            metadata=structs.replace(
                pod.metadata, name=f"{name}-{pod.metadata.name}", uid=f"{name}-{pod.metadata.uid}"
            ),
        )
        for pod in pods
    ]
    report = structs.replace(without_places(node.topology), node=name)
    return [NodeSeen(described), ReportSeen(report, 0.0), *(PodSeen(clusters.on_node(pod, name), 0.0) for pod in here)]


def held(engine: Engine, name: str, pods: list[Pod]) -> list[Holding | None]:
    assert isinstance(engine.flavour, ExactFlavour)
    engine.flavour.mirror.refresh()
    found = [engine.flavour.mirror.ledger.holding(f"{name}-{pod.metadata.uid}") for pod in pods]
    return [structs.replace(each, uid="", name="", shape=0) if each is not None else None for each in found]


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_of_others_are_where_they_would_be_on_the_node_alone(seed: int) -> None:
    rng = Random(seed)
    makes = [clusters.node(rng, f"make-{number}") for number in range(2)]
    pods = [clusters.pod(rng, f"pod-{number}", makes[0].wishes) for number in range(3)]
    nodes = {f"node-{number}": (makes[number % 2], rng.sample(pods, k=rng.randint(1, 3))) for number in range(8)}
    together = Engine()
    for name, (node, own) in nodes.items():
        for fact in facts(name, node, own):
            together.apply(fact)
    for name, (node, own) in nodes.items():
        alone = Engine()
        for fact in facts(name, node, own):
            alone.apply(fact)
        assert _by_name(together, held(together, name, own)) == _by_name(alone, held(alone, name, own))


def _by_name(engine: Engine, holdings: list[Holding | None]) -> list[object]:
    """Columns have other numbers in another engine."""
    names = engine.columns.resources.names
    return [
        each
        and (
            each.source,
            each.containers,
            sorted((names[e.column], e.amount, e.zones, e.certain) for e in each.entries),
        )
        for each in holdings
    ]
