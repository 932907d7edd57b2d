"""Where ids decide, the kubelet model decides, whatever pods were on the node in between."""

from __future__ import annotations

from random import Random

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, PodGone, PodSeen, ReportSeen
from tests import nodes
from tests.nodes import Node, guaranteed, pod, sidecar, simple
from tests.unit.placement import choices
from tests.unit.placement.clusters import ModelNode, on_node

HANGS_ON_IDS = pod(
    "p",
    guaranteed("main", 9),
    guaranteed("beside", 9),
    init=[guaranteed("first", 9), guaranteed("second", 2), sidecar(guaranteed("sidecar", 3))],
)
PASSING = simple("passing", 2)


@pytest.fixture
def engine() -> Engine:
    kubelet = Node(nodes.machine(cores=8, threads=2), "single-numa-node").kubelet
    node = ModelNode("n", kubelet, wishes=None)  # type: ignore[arg-type]
    engine = Engine()
    engine.apply(NodeSeen(node.node))
    engine.apply(ReportSeen(node.topology, 0.0))
    return engine


def test_a_pod_whose_room_hangs_on_cpu_ids_is_placed(engine: Engine) -> None:
    assert choices.chosen(engine, HANGS_ON_IDS, Random(1)).node == "n"


def finished(pod: Pod) -> Pod:
    return on_node(pod, "n", "Succeeded")


def deleted(pod: Pod) -> Pod:
    return structs.replace(finished(pod), metadata=structs.replace(pod.metadata, deletion_timestamp="then"))


def test_a_pod_that_came_and_went_between_two_reports_changes_nothing(engine: Engine) -> None:
    engine.apply(PodSeen(on_node(PASSING, "n"), 1.0))
    engine.apply(PodSeen(finished(PASSING), 2.0))
    engine.apply(PodGone(deleted(PASSING), 3.0))
    assert choices.chosen(engine, HANGS_ON_IDS, Random(1)).node == "n"
