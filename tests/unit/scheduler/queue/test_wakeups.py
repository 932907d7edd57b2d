"""The table as a whole: settings of profiles, hints that fail, several plugins; and what counts as a change."""

from __future__ import annotations

import pytest

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import NodeAffinity as Affinity
from numalign.api.objects.pod import Pod
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.scheduler.queue import clusterevents
from numalign.scheduler.queue import wakeups as interests
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.queue.wakeups import QueueingStrategy, Wakeups
from tests.unit.scheduler.changes import CORDONED, NODE, SSD, TAINTED, TARGET, TOLERANT, WEB, here, ports
from tests.unit.scheduler.waitingpods import asking, node, pod, refused


def test_an_affinity_of_the_profile_counts_too() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    added = decode.decode(Affinity, {"requiredDuringSchedulingIgnoredDuringExecution": terms})
    wakeups = Wakeups(interests.stock(affinity=NodeAffinity(added)))
    queued = QueuedPod(pod=pod("a"), added=0, since=0, number=1, rejection=refused("NodeAffinity"))
    came = [ObjectChange(ClusterEvent(NODE, Action.ADD), new=node("n", labels=labels)) for labels in ({}, SSD)]
    assert [wakeups.strategy(queued, each) for each in came] == [QueueingStrategy.SKIP, QueueingStrategy.AFTER_BACKOFF]


def test_a_hint_that_fails_counts_as_yes_and_is_counted() -> None:
    wakeups = Wakeups(interests.stock())
    queued = QueuedPod(pod=pod("a"), added=0, since=0, number=1, rejection=refused("NodeAffinity"))
    odd = ObjectChange(ClusterEvent(NODE, Action.ADD), new="not a node")
    assert wakeups.strategy(queued, odd) is QueueingStrategy.AFTER_BACKOFF
    assert wakeups.answers == {("NodeAffinity", "NodeAdd", "Error"): 1}


def test_one_of_several_that_says_yes_is_enough() -> None:
    queued = QueuedPod(
        pod=pod("a", ports(80)), added=0, since=0, number=1, rejection=refused("NodePorts", "NodeResourcesFit")
    )
    gone = ObjectChange(clusterevents.ASSIGNED_POD_DELETED, old=here("x"))
    assert Wakeups(interests.stock()).strategy(queued, gone) is QueueingStrategy.AFTER_BACKOFF


NODE_CHANGES: dict[str, tuple[Node, Node, list[str]]] = {
    "heartbeat": (node("n"), node("n"), []),
    "allocatable": (node("n"), node("n", cpu=9), ["NodeUpdateNodeAllocatable"]),
    "cordon": (node("n"), node("n", CORDONED), []),
    "uncordon": (node("n", CORDONED), node("n"), ["NodeUpdateNodeTaint"]),
    "several": (node("n", TAINTED), node("n", labels=SSD), ["NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]),
}


@pytest.mark.parametrize("old, new, labels", NODE_CHANGES.values(), ids=NODE_CHANGES)
def test_what_of_a_node_changed(old: Node, new: Node, labels: list[str]) -> None:
    assert [event.label for event in clusterevents.node_changes(old, new)] == labels


POD_CHANGES: dict[str, tuple[Pod, Pod, list[str]]] = {
    "nothing": (pod("a"), pod("a"), ["TargetPodUpdate"]),
    "label": (pod("a"), pod("a", **WEB), ["TargetPodUpdatePodLabel"]),
    "less": (pod("a", asking(cpu=2)), pod("a", asking(cpu=1)), ["TargetPodUpdatePodScaleDown"]),
    "more": (pod("a", asking(cpu=1)), pod("a", asking(cpu=2)), ["TargetPodUpdatePodScaleUp"]),
    "toleration": (pod("a"), pod("a", TOLERANT), ["TargetPodUpdatePodToleration"]),
}


@pytest.mark.parametrize("old, new, labels", POD_CHANGES.values(), ids=POD_CHANGES)
def test_what_of_a_pod_changed(old: Pod, new: Pod, labels: list[str]) -> None:
    assert [event.label for event in clusterevents.pod_changes(old, new, TARGET)] == labels
