"""The queue from the outside: who comes out when."""

from __future__ import annotations

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Wake, WakeCause
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queue import QueueSettings
from tests.unit.scheduler.waitingpods import names, node, pod, popped, queue, refused, tried

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)


def test_higher_priority_first_then_who_came_first() -> None:
    line = queue()
    for number, (name, priority) in enumerate([("a", 0), ("b", 5), ("c", 5), ("d", 9), ("e", -1)]):
        line.add(pod(name, {"priority": priority}), now=number)
    assert popped(line, 10) == ["d", "b", "c", "a", "e"]


def test_of_pods_added_at_the_same_moment_the_first_one_is_first() -> None:
    line = queue()
    for name in "zyx":
        line.add(pod(name), now=1)
    assert popped(line, 1) == ["z", "y", "x"]


def test_many_that_do_not_fit_do_not_hold_up_one_of_high_priority() -> None:
    line = queue()
    for number in range(1000):
        line.add(pod(f"low-{number}"), now=0)
    line.pop(0)
    line.add(pod("high", {"priority": 1000}), now=1)
    assert line.pop(1).pod.metadata.name == "high"  # type: ignore[union-attr]


def test_pods_are_on_their_way_from_when_they_are_ready_until_they_are_bound_or_refused() -> None:
    line = queue()
    for name in "abc":
        line.add(pod(name), now=0)
    assert line.on_their_way == 3
    bound = line.pop(0)
    assert bound is not None
    assert line.on_their_way == 3
    line.done(bound.uid, bound=True)
    tried(line, refused("NodeResourcesFit"), now=0)
    assert line.on_their_way == 1


def test_a_refused_pod_waits_for_an_event() -> None:
    line = queue()
    line.add(pod("a"), now=0)
    tried(line, refused("NodeResourcesFit"), now=0)
    assert names(line) == {"unschedulable": ["a"]}
    assert line.pop(60) is None


def test_an_event_of_another_plugin_does_not_wake_it() -> None:
    line = queue()
    line.add(pod("a"), now=0)
    tried(line, refused("NodeResourcesFit"), now=0)
    taints = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)
    assert line.move(ObjectChange(taints, node("n"), node("n")), 60) == 0
    assert names(line) == {"unschedulable": ["a"]}


def test_woken_within_its_backoff_it_backs_off_and_after_it_is_ready() -> None:
    line = queue()
    for name, now in (("early", 0), ("late", 0)):
        line.add(pod(name), now)
        tried(line, refused("NodePorts"), now)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.5)
    assert names(line) == {"backoff": ["early", "late"]}
    assert line.incoming["backoff", "NodeAdd"] == 2


def test_after_its_backoff_an_event_makes_it_ready_at_once() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("NodePorts"), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 2)
    assert names(line) == {"active": ["a"]}


def test_an_idle_scheduler_does_not_wait_for_the_end_of_a_backoff() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("NodePorts"), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.1)
    assert line.due(0.2) == 0.2
    assert popped(line, 0.2) == ["a"]
    assert line.incoming["active", "PopFromBackoffQ"] == 1


def test_ends_of_backoffs_in_one_second_come_out_by_priority() -> None:
    line = queue()
    for name, priority, now in (("low", 0, 0.1), ("high", 9, 0.9)):
        line.add(pod(name, {"priority": priority}), now)
        tried(line, refused("NodePorts"), now)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.95)
    assert popped(line, 1.0) == ["high", "low"]


def test_after_an_error_a_pod_waits_its_backoff_even_if_no_other_is_pending() -> None:
    line = queue()
    line.add(pod("a"), 0)
    line.fail(line.pop(0.5).uid, 0.5)  # type: ignore[union-attr]
    assert line.pop(1.9) is None
    assert line.due(1.0) == 2.0
    assert popped(line, 2.0) == ["a"]


def test_errors_in_a_row_double_the_wait_and_a_refusal_ends_the_row() -> None:
    line, waits = queue(), []
    line.add(pod("a"), 0)
    now = 0.0
    for _ in range(3):
        queued = line.fail(line.pop(now).uid, now)  # type: ignore[union-attr]
        assert queued is not None
        waits.append(queued.errors)
        now += 60
    assert (waits, tried(line, refused("NodePorts"), now).errors) == ([1, 2, 3], 0)


def test_a_plugin_that_only_waits_for_something_lets_the_pod_skip_its_backoff() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused(pending=frozenset({"NodePorts"})), 0)
    line.move(ObjectChange(NODE_ADDED, new=node("n")), 0.1)
    assert names(line) == {"active": ["a"]}


def test_an_unknown_plugin_is_woken_by_everything() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("Extender"), 0)
    assert line.move(ObjectChange(ClusterEvent(Resource.CSI_DRIVER, Action.DELETE)), 5) == 1


def test_who_waited_for_five_minutes_is_tried_for_no_reason() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("NodePorts"), 0)
    assert popped(line, 300) == []
    assert line.due(300) == 330
    assert popped(line, 330) == ["a"]
    line.done("uid-a", bound=True)
    assert (line.bound_after_flush, line.incoming["active", "UnschedulableTimeout"]) == (1, 1)


def test_the_time_until_the_flush_is_a_setting() -> None:
    line = queue(settings=QueueSettings(longest_parked=60))
    line.add(pod("a"), 0)
    tried(line, refused("NodePorts"), 0)
    assert popped(line, 61) == ["a"]


def test_an_activated_pod_is_ready_whatever_it_waited_for() -> None:
    line = queue()
    for name in "ab":
        line.add(pod(name), 0)
    tried(line, refused("NodePorts"), 0)
    line.fail(line.pop(0).uid, 0)  # type: ignore[union-attr]
    line.activate(["uid-a", "uid-b", "uid-nobody"], 0)
    assert names(line) == {"active": ["a", "b"]}
    assert line.incoming["active", "ForceActivate"] == 2


def test_nothing_is_due_in_an_empty_queue() -> None:
    assert queue().due(3) is None


def test_reasons_are_kept_by_plugin_and_counted_by_plugin_and_profile() -> None:
    line = queue()
    line.add(pod("a"), 0)
    queued = tried(line, refused("NodePorts", "NodeResourcesFit"), 0)
    assert queued.rejection.reasons["NodePorts"] == ("NodePorts says no",)
    assert line.refusing() == {("NodePorts", "numalign"): 1, ("NodeResourcesFit", "numalign"): 1}


def test_a_pod_added_twice_is_there_once() -> None:
    line = queue()
    line.add(pod("a"), 0)
    line.add(pod("a", labels={"x": "y"}), 1)
    assert [each.metadata.labels for each in map(_pod, line.pending()["active"])] == [{"x": "y"}]


def _pod(queued: object) -> Pod:
    return queued.pod  # type: ignore[attr-defined, no-any-return]


class Refusing:
    """An engine that refuses pods on these nodes."""

    def __init__(self, *nodes: str) -> None:
        self.nodes = set(nodes)

    def refuses(self, pod: Pod, node: str) -> bool:
        return node in self.nodes


@pytest.mark.parametrize(
    "freed, still, woken",
    [("n1", (), 1), ("n3", (), 0), ("n1", ("n1",), 0), ("n1", ("n2",), 1)],
    ids=["blocked there", "not blocked there", "blocked there still", "blocked elsewhere still"],
)
def test_zones_wake_only_pods_that_they_blocked(freed: str, still: tuple[str, ...], woken: int) -> None:
    line = queue(zones=Refusing(*still))
    line.add(pod("a"), 0)
    tried(line, refused("NodeResourceTopologyMatch", zones_of=frozenset({"n1", "n2"})), 0)
    assert line.wake([Wake(freed, WakeCause.FREED)], 5) == woken


def test_zones_do_not_wake_pods_that_something_else_keeps_away() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("NodePorts"), 0)
    assert line.wake([Wake("n1", WakeCause.REPORT)], 5) == 0


def test_a_new_node_wakes_pods_that_zones_block() -> None:
    line = queue()
    line.add(pod("a"), 0)
    tried(line, refused("NodeResourceTopologyMatch", zones_of=frozenset({"n1"})), 0)
    assert line.move(ObjectChange(NODE_ADDED, new=node("n9")), 5) == 1


def test_labels_are_those_of_the_stock_metrics() -> None:
    events = [
        clusterevents.POD_ADDED,
        clusterevents.ASSIGNED_POD_DELETED,
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT),
        ClusterEvent(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
        ClusterEvent(Resource.STORAGE_CLASS, Action.UPDATE),
        clusterevents.zones(Wake("n", WakeCause.FREED)).event,
    ]
    assert [event.label for event in events] == [
        "UnscheduledPodAdd",
        "AssignedPodDelete",
        "NodeUpdateNodeTaint",
        "TargetPodUpdatePodSchedulingGatesEliminated",
        "storage.k8s.io/StorageClassUpdate",
        "NumaZonesFreed",
    ]
