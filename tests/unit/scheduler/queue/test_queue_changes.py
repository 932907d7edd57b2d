"""Pods that change, go or get a node, wherever they are in the queue; and what happens while they are in flight."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Wake, WakeCause
from numalign.scheduler.profiles import ZONES
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queue import InFlightPods, SchedulingQueue
from tests.unit.scheduler.waitingpods import asking, names, node, pod, popped, queue, refused, tried

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
GATED: dict[str, Any] = {"schedulingGates": [{"name": "quota"}]}


def in_flight(line: SchedulingQueue, name: str = "a", spec: dict[str, Any] | None = None) -> None:
    line.add(pod(name, spec), 0)
    assert popped(line, 0) == [name]


# In flight (kube-scheduler spec 3.8)


def test_an_event_between_pop_and_failure_is_not_lost() -> None:
    line = queue()
    in_flight(line)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.1)
    line.park("uid-a", refused("NodePorts"), 0.2)
    assert names(line) == {"backoff": ["a"]}


def test_an_event_before_the_pop_is_not_played_back() -> None:
    line = queue()
    in_flight(line, "other")
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0)
    in_flight(line)
    line.park("uid-a", refused("NodePorts"), 0.2)
    assert names(line) == {"unschedulable": ["a"]}


def test_the_zones_that_got_better_meanwhile_are_held_against_the_new_refusal() -> None:
    line = queue()
    for name in "ab":
        in_flight(line, name)
    line.wake([Wake("n1", WakeCause.FREED)], 0.1)
    line.park("uid-a", refused("NodeResourceTopologyMatch", zones_of=frozenset({"n1"})), 0.2)
    line.park("uid-b", refused("NodeResourceTopologyMatch", zones_of=frozenset({"n2"})), 0.2)
    assert names(line) == {"backoff": ["a"], "unschedulable": ["b"]}


def test_of_a_pending_plugin_and_a_refusing_one_the_stronger_answer_counts() -> None:
    line = queue()
    in_flight(line)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.1)
    line.park("uid-a", refused("NodePorts", pending=frozenset({"VolumeRestrictions"})), 0.2)
    assert names(line) == {"active": ["a"]}


def test_a_pod_deleted_in_flight_does_not_come_back() -> None:
    line = queue()
    in_flight(line)
    line.delete("uid-a", 0.1)
    assert line.park("uid-a", refused("NodePorts"), 0.2) is None
    assert (names(line), len(line.flights)) == ({}, 0)


def test_a_pod_that_another_scheduler_binds_in_flight_does_not_come_back() -> None:
    line = queue()
    in_flight(line)
    line.assigned("uid-a")
    line.update(pod("a", labels={"late": "news"}), 0.1)
    assert line.fail("uid-a", 0.2) is None
    assert names(line) == {}


def test_a_pod_recreated_under_its_name_is_another_one() -> None:
    line = queue()
    in_flight(line)
    line.delete("uid-a", 0.1)
    line.add(pod("a", uid="another"), 0.1)
    assert line.park("uid-a", refused("NodePorts"), 0.2) is None
    assert [each.uid for each in line.pending()["active"]] == ["another"]


def test_a_pod_updated_in_flight_comes_back_as_it_is_now() -> None:
    line = queue()
    in_flight(line)
    line.update(pod("a", labels={"x": "new"}), 0.1)
    queued = line.park("uid-a", refused("NodePorts"), 0.2)
    assert queued is not None
    assert queued.pod.metadata.labels == {"x": "new"}


def test_an_update_in_flight_may_be_what_the_pod_needed() -> None:
    line = queue()
    for name in "ab":
        in_flight(line, name)
    line.update(pod("a", {"tolerations": [{"operator": "Exists"}]}), 0.1)
    for name in "ab":
        line.park(f"uid-{name}", refused("TaintToleration"), 0.2)
    assert names(line) == {"backoff": ["a"], "unschedulable": ["b"]}


def test_activated_in_flight_it_is_tried_again() -> None:
    line = queue()
    for name in "ab":
        in_flight(line, name)
    line.activate(["uid-a"], 0.1)
    for name in "ab":
        line.park(f"uid-{name}", refused("NodePorts"), 0.2)
    assert names(line) == {"backoff": ["a"], "unschedulable": ["b"]}


def test_parking_what_was_never_popped_does_nothing() -> None:
    line = queue()
    line.add(pod("a"), 0)
    assert line.park("uid-a", refused("NodePorts"), 0) is None
    assert names(line) == {"active": ["a"]}


def test_events_are_kept_only_as_long_as_a_flight_needs_them() -> None:
    line = queue()
    in_flight(line, "a")
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0)
    in_flight(line, "b")
    line.move(ObjectChange(NODE_ADDED, new=node("m")), 0)
    kept = [line.flights.kept().total()]
    for uid in ("uid-a", "uid-b"):
        line.done(uid)
        kept.append(line.flights.kept().total())
    line.move(ObjectChange(NODE_ADDED, new=node("o")), 0)
    assert (kept, line.flights.kept().total()) == ([2, 1, 0], 0)


def test_a_flight_that_missed_more_than_is_kept_is_reported_as_such() -> None:
    flights, line = InFlightPods(most_events=3), queue()
    line.add(pod("a"), 0)
    (queued,) = line.pending()["active"]
    flights.start(queued)
    flight = flights.get("uid-a")
    assert flight is not None
    for _ in range(3):
        flights.record(ObjectChange(NODE_ADDED))
    assert len(flights.missed(flight) or ()) == 3
    flights.record(ObjectChange(NODE_ADDED))
    assert flights.missed(flight) is None


# Updates of pods that wait


def test_an_update_of_a_ready_pod_replaces_it_in_its_place() -> None:
    line = queue()
    for name in "ab":
        line.add(pod(name), 0)
    line.update(pod("a", labels={"x": "y"}), 1)
    assert [(each.pod.metadata.name, each.pod.metadata.labels) for each in line.pending()["active"]] == [
        ("a", {"x": "y"}),
        ("b", {}),
    ]


@pytest.mark.parametrize(
    "plugin, change, pool",
    [
        ("TaintToleration", pod("a", {"tolerations": [{"operator": "Exists"}]}), "active"),
        ("NodeResourcesFit", pod("a", asking(cpu=1)), "active"),
        ("NodeResourcesFit", pod("a", asking(cpu=4), annotations={"x": "y"}), "unschedulable"),
        ("NodeResourcesFit", pod("a", asking(cpu=4), status={"phase": "Pending"}), "unschedulable"),
        ("InterPodAffinity", pod("a", asking(cpu=4), labels={"x": "y"}), "active"),
        ("NodeResourcesFit", pod("a", asking(cpu=4), labels={"x": "y"}), "unschedulable"),
        (ZONES, pod("a", asking(cpu=4), annotations={"numalign.io/strictness": "prefer"}), "active"),
        (ZONES, pod("a", asking(cpu=1)), "active"),
        (ZONES, pod("a", asking(cpu=4), annotations={"x": "y"}), "unschedulable"),
        (ZONES, pod("a", {**asking(cpu=4), "tolerations": [{"operator": "Exists"}]}), "unschedulable"),
    ],
    ids=[
        "toleration",
        "less",
        "annotation",
        "status",
        "label that counts",
        "label that does not",
        "another wish",
        "less in zones",
        "annotation that is no wish",
        "toleration that zones do not look at",
    ],
)
def test_an_update_of_a_parked_pod_wakes_it_if_it_may_help(plugin: str, change: Pod, pool: str) -> None:
    line = queue()
    line.add(pod("a", asking(cpu=4)), 0)
    tried(line, refused(plugin), 0)
    line.update(change, 5)
    assert names(line) == {pool: ["a"]}


def test_an_update_that_was_seen_already_is_left_out() -> None:
    line = queue()
    line.add(pod("a", resourceVersion="7"), 0)
    line.update(pod("a", labels={"x": "y"}, resourceVersion="7"), 1)
    assert line.pending()["active"][0].pod.metadata.labels == {}


def test_an_update_of_a_pod_that_is_not_known_adds_it() -> None:
    line = queue()
    line.update(pod("a"), 1)
    assert names(line) == {"active": ["a"]}


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable", "gated"])
def test_a_deleted_pod_is_nowhere(place: str) -> None:
    line = queue()
    line.add(pod("a", GATED if place == "gated" else None), 0)
    if place in ("backoff", "unschedulable"):
        tried(line, refused("NodePorts"), 0)
    if place == "backoff":
        line.move(ObjectChange(NODE_ADDED, new=node("n")), 0)
    assert names(line) == {place: ["a"]}
    line.delete("uid-a", 1)
    assert (names(line), popped(line, 900)) == ({}, [])


# Gates


def test_a_gated_pod_waits_until_its_last_gate_is_gone() -> None:
    line = queue()
    line.add(pod("a", {"schedulingGates": [{"name": "x"}, {"name": "y"}]}), 0)
    line.update(pod("a", GATED), 1)
    assert names(line) == {"gated": ["a"]}
    line.update(pod("a"), 2)
    assert names(line) == {"active": ["a"]}
    assert line.incoming["active", "TargetPodUpdatePodSchedulingGatesEliminated"] == 1


def test_nothing_else_moves_a_gated_pod() -> None:
    line = queue()
    line.add(pod("a", GATED), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 1)
    line.activate(["uid-a"], 1)
    line.flush(1000)
    assert names(line) == {"gated": ["a"]}


def test_time_behind_a_gate_is_not_time_of_readiness() -> None:
    line = queue()
    line.add(pod("a", GATED), 0)
    line.update(pod("a"), 50)
    queued = line.pop(60)
    assert queued is not None
    assert (queued.added, queued.ready) == (0, 50)


class Preempting:
    """A gate that stays closed during a preemption."""

    name = "DefaultPreemption"

    def __init__(self) -> None:
        self.shut = True

    def holds(self, pod: Pod) -> bool:
        return self.shut


def test_a_preemptor_is_woken_by_the_last_victim_and_not_before_its_gate_opens() -> None:
    gate = Preempting()
    gate.shut = False
    line = queue(gates=[gate])
    in_flight(line)
    gate.shut = True
    line.park("uid-a", refused("NodeResourcesFit"), 0)
    gone = ObjectChange(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), old=pod("v", {"nodeName": "n"}))
    line.move(gone, 5)
    assert names(line) == {"gated": ["a"]}
    gate.shut = False
    line.move(gone, 6)
    assert names(line) == {"active": ["a"]}


def test_a_gate_that_shuts_while_a_pod_backs_off_is_seen_when_its_turn_comes() -> None:
    gate = Preempting()
    gate.shut = False
    line = queue(gates=[gate])
    for name in "ab":
        line.add(pod(name), 0)
    tried(line, refused("NodePorts"), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0)
    assert popped(line, 0)[0] == "b"
    line.park("uid-a", refused("NodePorts"), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0)
    gate.shut = True
    assert (popped(line, 0.1), names(line)) == ([], {"gated": ["a"]})
