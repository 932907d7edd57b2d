"""The first report of a node whose make is known is read as if it were the first of its make."""

import pytest
from msgspec import structs

from numalign.api.node import Node as NodeObject
from numalign.api.nodetopology import NodeTopology
from numalign.kubelet import plainreport, report
from numalign.placement import ingest, nodesettings
from numalign.placement.engine import Engine
from numalign.placement.exactflavour import ExactFlavour
from numalign.placement.facts import NodeSeen, ReportSeen
from tests.nodes import GPU, Node, machine, plugin, simple
from tests.unit.placement.written import worker

SMALL, LARGE = worker(cpu=16), worker(cpu=32)


def reported(name: str, *, plain: bool, cores: int = 4, busy: bool = False) -> NodeTopology:
    node = Node(machine(cores=cores, threads=2, devices={GPU: plugin(0, 1)}), "restricted")
    if busy:
        node.placed(simple("a", cpu=2, gpu=1))
    if plain:
        return plainreport.of(name, node.kubelet, node.state, "rte")
    return report.of(name, node.kubelet, node.state)


def named(node: NodeObject, name: str) -> NodeObject:
    return structs.replace(node, metadata=structs.replace(node.metadata, name=name))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "our agent's"])
def test_every_node_of_a_make_is_read_as_itself(plain: bool) -> None:
    engine = Engine()
    assert isinstance(engine.flavour, ExactFlavour)
    cluster = {
        "first": (SMALL, reported("first", plain=plain)),
        "busy": (SMALL, reported("busy", plain=plain, busy=True)),
        "another machine": (SMALL, reported("another machine", plain=plain, cores=8)),
        "another Node": (LARGE, reported("another Node", plain=plain)),
        "another publisher": (SMALL, reported("another publisher", plain=not plain)),
        "last": (SMALL, reported("last", plain=plain)),
    }
    for name, (node, topology) in cluster.items():
        engine.apply(NodeSeen(named(node, name)))
        engine.apply(ReportSeen(topology, 0.0))
    for name, (node, topology) in cluster.items():
        expected = ingest.read(topology, nodesettings.essence(node))
        assert engine.flavour.mirror.ledger.facts(name) == expected
