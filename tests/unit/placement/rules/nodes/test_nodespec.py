"""Cordoned nodes take only pods that tolerate it."""

from typing import Any

import pytest

from numalign.placement.rules.nodes.nodespec import NodeUnschedulable
from tests.unit.placement.rules import worlds

CLUSTER = worlds.world([worlds.node("open"), worlds.node("cordoned", unschedulable=True)])
KEY = "node.kubernetes.io/unschedulable"


def test_a_cordoned_node_refuses_a_pod() -> None:
    here, there = worlds.refusals(NodeUnschedulable(), worlds.pod(), CLUSTER)
    assert here is None
    assert there is not None
    assert (there.reasons, there.unresolvable) == (("node(s) were unschedulable",), True)


@pytest.mark.parametrize(
    "toleration, admitted",
    [
        pytest.param({"key": KEY, "operator": "Exists"}, True, id="the taint of cordoned nodes"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": KEY, "operator": "Equal", "value": ""}, True, id="its empty value"),
        pytest.param({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "other", "operator": "Exists"}, False, id="another taint"),
    ],
)
def test_a_pod_that_tolerates_it_is_let_through(toleration: dict[str, Any], admitted: bool) -> None:
    pod = worlds.pod(tolerations=[toleration])
    assert ("cordoned" in worlds.fitting(NodeUnschedulable(), pod, CLUSTER)) is admitted


def test_uncordoning_is_seen() -> None:
    world = worlds.world([worlds.node("a", unschedulable=True)])
    world.put_node(0, worlds.node("a"))
    assert worlds.fitting(NodeUnschedulable(), worlds.pod(), world) == ["a"]
