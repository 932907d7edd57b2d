import random

import pytest

from numalign.agent.publish import forms
from numalign.api.nrt import normalise, topologymanager, wire
from numalign.kubelet.machine import presets
from numalign.kubelet.report import plainreport, report
from numalign.simulator.nodes.nodeobjects import Identity
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.nodes.publisher import reports
from numalign.simulator.nodes.specs import NodeSpec, NodeTypes, PublisherKind
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage

SPEC = NodeSpec(name="n1", machine=presets.machine("dgx-8"), settings=stage.STATIC)


def node_state(node_types: NodeTypes, name: str = "n1") -> NodeState:
    return NodeState(
        NodeSpec(name=name, machine=SPEC.machine, settings=SPEC.settings),
        node_types.of(SPEC.machine, SPEC.settings),
        Identity(0),
    )


def body(publisher: PublisherKind, seed: int = 1) -> Tree:
    chances = random.Random(seed)
    return reports.body(reports.seen(node_state(NodeTypes()), publisher), publisher, chances)


def names(tree: Tree) -> list[str]:
    return [each["name"] for each in tree["attributes"]]


def test_our_report_is_the_models() -> None:
    node = node_state(NodeTypes())
    assert reports.seen(node, "agent") == report.of("n1", node.kubelet, node.state)


@pytest.mark.parametrize("publisher", ["rte", "nfd"])
def test_reports_of_others_are_the_plain_ones(publisher: plainreport.Publisher) -> None:
    node = node_state(NodeTypes())
    assert reports.seen(node, publisher) == plainreport.of("n1", node.kubelet, node.state, publisher)


def test_nodes_without_pods_are_looked_at_once_and_keep_their_names() -> None:
    node_types = NodeTypes()
    first, second = (reports.seen(node_state(node_types, name), "agent") for name in ("n1", "n2"))
    assert first.zones is second.zones
    assert (first.node, second.node) == ("n1", "n2")


@pytest.mark.parametrize("publisher", ["agent", "rte", "nfd"])
def test_readers_find_the_same_zones_whatever_the_order(publisher: PublisherKind) -> None:
    node = node_state(NodeTypes())
    read = normalise.normalise(wire.decode(body(publisher)))
    assert read.zones == reports.seen(node, publisher).zones
    assert read.manager == topologymanager.TopologyManager("single-numa-node", "container")


def test_others_list_resources_in_random_order_and_we_do_not() -> None:
    assert body("agent", 1) == body("agent", 2)
    assert body("rte", 1) != body("rte", 2)
    assert body("nfd", 1) != body("nfd", 2)


def test_each_publisher_writes_its_own_attributes() -> None:
    assert names(body("rte")) == list(forms.ORDERS["rte"])
    assert names(body("nfd")) == list(forms.ORDERS["nfd"][:2])
    assert "numalign.io/cores" in names(body("agent"))


def test_all_but_rte_write_the_old_token() -> None:
    found = {publisher: body(publisher).get("topologyPolicies") for publisher in ("agent", "rte", "nfd")}
    assert found == {"agent": ["SingleNUMANodeContainerLevel"], "rte": None, "nfd": ["SingleNUMANodeContainerLevel"]}


def test_attributes_are_left_out_by_name() -> None:
    left = reports.without(body("agent"), (normalise.FINGERPRINT, "numalign.io/cores"))
    assert not {normalise.FINGERPRINT, "numalign.io/cores"} & set(names(left))
    assert names(left)


def test_every_kind_of_garbage_changes_the_report_and_can_be_read() -> None:
    tree = body("agent")
    spoilt = [reports.garbled(tree, random.Random(seed)) for seed in range(60)]
    assert all(each != tree for each in spoilt)
    assert len({str(each) for each in spoilt}) == len(reports.WAYS)
    read = [normalise.normalise(wire.decode(each)) for each in spoilt]
    assert all(each.guesses or not each.zones for each in read)
