"""A pod that names its node goes nowhere else."""

from numalign.placement.rules.nodes.nodespec import NodeName
from tests.unit.placement.rules import worlds

CLUSTER = worlds.world([worlds.node("a"), worlds.node("b")])


def test_a_pod_without_a_name_is_not_looked_at() -> None:
    assert NodeName().prepare(worlds.pod(), CLUSTER) is None


def test_only_the_named_node_fits() -> None:
    here, there = worlds.refusals(NodeName(), worlds.pod(nodeName="b"), CLUSTER)
    assert there is None
    assert here is not None
    assert (here.reasons, here.unresolvable) == (("node(s) didn't match the requested node name",), True)


def test_the_search_is_narrowed_to_the_name_even_if_no_node_has_it() -> None:
    prepared = NodeName().prepare(worlds.pod(nodeName="gone"), CLUSTER)
    assert prepared is not None
    assert prepared.only == frozenset({"gone"})
    assert worlds.fitting(NodeName(), worlds.pod(nodeName="gone"), CLUSTER) == []
