"""A replay decides by everything that the scheduler used, and shows the details of one node."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.workloads import DeviceClass
from numalign.scheduler.explain import replay
from numalign.scheduler.explain.replay import NodeReplay
from numalign.scheduler.snapshot import files
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests.unit.scheduler import servers

NODES = ("a", "b", "c")
GPUS = decode.decode(DeviceClass, {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}})


def taken(*, gpus: int = 4, **objects: Any) -> Snapshot:
    """A snapshot that was written and read again; a pod holds all GPUs of node a."""
    there = {
        "nodes": tuple(map(servers.node, NODES)),
        "noderesourcetopologies": tuple(map(servers.reported, NODES)),
        "pods": (servers.trainer("p", gpus=gpus), servers.on(servers.trainer("other", gpus=8), "a")),
    }
    return files.read(b"".join(files.pieces(Snapshot(objects=there | objects))), "dump")


def on_node(snapshot: Snapshot, node: str) -> NodeReplay:
    found = replay.repeated(snapshot, "default/p", node).on_node
    assert found is not None
    return found


def test_pods_that_ask_for_what_a_class_stands_for_are_left_alone_offline_too() -> None:
    again = replay.repeated(taken(deviceclasses=(GPUS,)), "default/p")
    assert "pod asks for nvidia.com/gpu, which DeviceClass gpus stands for" in again.message
    assert replay.repeated(taken(), "default/p").node in ("b", "c")


def test_a_node_that_takes_the_pod_has_a_score_and_no_reason() -> None:
    found = on_node(taken(), "b")
    assert (found.answer, found.ranked is not None) == (None, True)


def test_a_node_that_refuses_has_a_reason_and_no_score() -> None:
    found = on_node(taken(), "a")
    assert (found.answer is not None, found.ranked) == (True, None)


@pytest.mark.parametrize("node", NODES)
def test_a_node_is_shown_as_it_was_before_the_decision(node: str) -> None:
    found = on_node(taken(), node).occupied
    assert found is not None
    assert [each.name for each in found.tenants] == (["default/other"] if node == "a" else [])


def test_what_is_wrong_with_the_pod_itself_is_said_of_every_node() -> None:
    answer = on_node(taken(deviceclasses=(GPUS,)), "b").answer
    assert answer is not None
    assert answer.plugin == "DynamicResources"
