"""The cluster state tracks nodes and pods, and notifies its followers."""

from __future__ import annotations

from numalign.placement.rules.clusterstate import FIRST_ROWS, AssignedPod, ClusterState
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rowclasses import ABSENT
from tests.unit.placement.rules import worlds


class Diary:
    """Records its notifications."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def node_changed(self, row: int) -> None:
        self.entries.append(f"node {row}")

    def pod_added(self, assigned: AssignedPod) -> None:
        self.entries.append(f"+{assigned.uid}@{assigned.row}")

    def pod_removed(self, assigned: AssignedPod) -> None:
        self.entries.append(f"-{assigned.uid}@{assigned.row}")


def test_a_follower_is_notified_of_what_is_there_and_then_of_changes() -> None:
    world, diary = worlds.world([worlds.node("a"), worlds.node("b")], {"a": [worlds.pod()]}), Diary()
    world.follow(diary)
    world.put_pod("a/0", 1, worlds.pod())
    world.drop_node(0)
    world.drop_pod("a/0")
    world.drop_pod("unheard of")
    assert diary.entries == ["node 0", "node 1", "+a/0@0", "-a/0@0", "+a/0@1", "node 0", "-a/0@1"]


def test_pods_of_a_node_that_is_gone_count_again_when_it_comes_back() -> None:
    world = worlds.world([worlds.node("a", allocatable={"cpu": "4", "pods": "9"})], {"a": [worlds.pod({"cpu": "3"})]})
    world.drop_node(0)
    assert not world.present[0]
    assert world.rows == {}
    world.put_node(0, worlds.node("a", allocatable={"cpu": "4", "pods": "9"}))
    assert worlds.fitting(NodeResourcesFit(), worlds.pod({"cpu": "2"}), world) == []


def test_a_row_can_go_to_another_node() -> None:
    world = worlds.world([worlds.node("a", labels={"zone": "x"})])
    assert worlds.fitting(NodeAffinity(), worlds.pod(nodeSelector={"zone": "x"}), world) == ["a"]
    world.drop_node(0)
    world.put_node(0, worlds.node("b", labels={"zone": "y"}))
    assert world.rows == {"b": 0}
    assert worlds.fitting(NodeAffinity(), worlds.pod(nodeSelector={"zone": "x"}), world) == []


def test_a_node_can_move_to_another_row_before_its_old_one_is_dropped() -> None:
    world = worlds.world([worlds.node("a")])
    world.put_node(1, worlds.node("a"))
    world.drop_node(0)
    assert world.rows == {"a": 1}


def test_rows_are_made_as_needed_and_what_was_known_stays() -> None:
    world = worlds.world([worlds.node("a", labels={"zone": "x"}, allocatable={"cpu": "1", "pods": "1"})])
    pod = worlds.pod({"cpu": "1"}, nodeSelector={"zone": "x"})
    assert worlds.fitting(NodeAffinity(), pod, world) == ["a"]
    for row in range(1, 3 * FIRST_ROWS):
        world.put_node(row, worlds.node(f"n{row}", labels={"zone": "xy"[row % 2]}))
    expected = ["a", *(f"n{row}" for row in range(2, 3 * FIRST_ROWS, 2))]
    assert worlds.fitting(NodeAffinity(), pod, world) == expected
    assert len(worlds.fitting(NodeResourcesFit(), pod, world)) == 3 * FIRST_ROWS


def test_a_label_becomes_classes_over_rows() -> None:
    world = worlds.world([worlds.node("a", labels={"zone": "x"}), worlds.node("b"), worlds.node("c")])
    world.put_node(2, worlds.node("c", labels={"zone": "x"}))
    column = world.labels.column("zone")
    first, second, third = column.ids[:3].tolist()
    assert (first, second) == (third, ABSENT)
    assert column.values[first] == "x"


def test_a_pod_far_out_makes_room_too() -> None:
    world = ClusterState()
    world.put_pod("u", 5 * FIRST_ROWS, worlds.pod({"cpu": "1"}))
    assert world.totals.requested[0, 5 * FIRST_ROWS] == 1000
    assert len(world.present) == world.capacity > 5 * FIRST_ROWS
