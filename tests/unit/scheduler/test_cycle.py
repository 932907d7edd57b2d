"""One attempt after the other: to a binding, or back to the queue with a reason."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from numalign.api.objects.pod import Pod
from numalign.scheduler.bind.binder import PendingBinding, VolumeBinder
from numalign.scheduler.choose.stormguard import Replicas, StormGuard
from numalign.scheduler.cycle import Cycle
from numalign.scheduler.events.publish import PendingReason, Publisher
from numalign.scheduler.metrics import Metrics
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import Servers, trainer

REASON = "TopologyAffinityError"


class RecordingPublisher:
    def __init__(self) -> None:
        self.waits: list[tuple[str, str, str]] = []

    def refused(self, pod: Pod, wait: PendingReason) -> None:
        self.waits.append((pod.metadata.name, wait.reason, wait.message))

    def warned(self, pod: Any, reason: str, action: str, note: str) -> None:
        self.waits.append((pod.name, reason, note))


class Turning:
    """A cycle whose bindings are only written down."""

    def __init__(self, *nodes: str) -> None:
        self.servers, self.queue = Servers(*nodes), waitingpods.queue()
        self.published, self.counts, self.binds = RecordingPublisher(), Metrics(), list[PendingBinding]()
        self.guard = StormGuard()
        self.cycle = Cycle(
            self.servers.cluster,
            self.queue,
            {"numalign": self.servers.profile},
            binder=self,
            volumes=cast(VolumeBinder, None),
            publisher=cast(Publisher, self.published),
            rejections=self.guard,
            counts=self.counts,
            clock=cast(Any, self),
            rng=Random(1),
        )

    def start(self, bind: PendingBinding) -> None:
        self.binds.append(bind)

    def now(self) -> float:
        return 0.0

    def turn(self, *pods: Pod) -> None:
        for pod in pods:
            self.queue.add(pod, 0.0)
        while (queued := self.queue.pop(0.0)) is not None:
            self.cycle.step(queued)


def test_a_pod_with_a_node_is_assumed_there_and_handed_on_to_be_bound() -> None:
    turning = Turning("a")
    turning.turn(trainer("p"))
    assert [(bind.pod.metadata.name, bind.node) for bind in turning.binds] == [("p", "a")]
    assert list(turning.servers.cluster.assumed) == ["uid-p"]
    assert turning.queue.flights.get("uid-p") is not None


def test_a_pod_without_one_is_parked_and_reported() -> None:
    turning = Turning("a")
    turning.turn(trainer("p", gpus=9))
    assert waitingpods.names(turning.queue) == {"unschedulable": ["p"]}
    assert turning.published.waits == [
        (
            "p",
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. "
            "The pod fits on no node, even when empty: the pod needs 9 nvidia.com/gpu, a node has at most 8.",
        )
    ]


def test_higher_priority_comes_first() -> None:
    turning = Turning("a")
    turning.turn(trainer("low", gpus=4), trainer("more", gpus=4), trainer("high", gpus=4, priority=10))
    assert [bind.pod.metadata.name for bind in turning.binds] == ["high", "low"]


def test_a_pod_that_is_being_deleted_is_left_alone() -> None:
    turning = Turning("a")
    turning.turn(waitingpods.pod("p", deletionTimestamp="2026-01-01T00:00:00Z"))
    assert turning.binds == []
    assert turning.published.waits == [("p", "FailedScheduling", "skip schedule deleting pod: default/p")]


def test_a_pod_whose_annotation_makes_no_sense_waits_with_that_reason() -> None:
    turning = Turning("a")
    turning.turn(waitingpods.pod("p", annotations={"numalign.io/scope": "galaxy"}))
    assert turning.published.waits[0][1] == "Unschedulable"
    assert "galaxy" in turning.published.waits[0][2]


def test_a_mistake_of_ours_costs_one_attempt_of_one_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    turning = Turning("a")
    shape = turning.servers.cluster.engine.shape

    def broken(pod: Pod) -> object:
        if pod.metadata.name == "p":
            raise RuntimeError("broken")
        return shape(pod)

    monkeypatch.setattr(turning.servers.cluster.engine, "shape", broken)
    turning.turn(trainer("p"), trainer("q"))
    assert [bind.pod.metadata.name for bind in turning.binds] == ["q"]
    assert turning.published.waits == [("p", "SchedulerError", "RuntimeError: broken")]
    assert list(turning.counts.attempt_seconds.counts()) == [(("error", "numalign"), 1)]


def test_a_shape_is_kept_off_the_node_that_turned_it_away() -> None:
    turning = Turning("a", "b")
    number = turning.servers.cluster.engine.shape(trainer("p")).number
    turning.guard.rejected(number, "a", REASON, 0.0)
    turning.turn(*(trainer(f"p{n}") for n in range(4)))
    assert {bind.node for bind in turning.binds} == {"b"}


def test_where_all_turned_it_away_that_is_the_reason() -> None:
    turning = Turning("a")
    number = turning.servers.cluster.engine.shape(trainer("p")).number
    turning.guard.rejected(number, "a", REASON, 0.0)
    turning.turn(trainer("p"))
    assert turning.published.waits[0][2].startswith(
        f"0/1 nodes are available: 1 node(s) turned away pods like this one ({REASON})."
    )


def test_a_pod_is_kept_off_a_node_that_keeps_turning_away_replicas_of_its_owner() -> None:
    turning = Turning("a")
    number = turning.servers.cluster.engine.shape(trainer("p")).number
    for _ in range(2):
        turning.guard.rejected(Replicas("uid-set", number), "a", REASON, 0.0)
    turning.turn(servers.owned(trainer("p"), "uid-set"), trainer("alone"))
    assert [bind.pod.metadata.name for bind in turning.binds] == ["alone"]
    assert turning.published.waits[0][2].startswith(
        f"0/1 nodes are available: 1 node(s) keep turning away replicas of the same owner ({REASON})."
    )


def test_room_promised_to_a_pod_of_higher_priority_is_left_to_it() -> None:
    turning = Turning("a")
    preemptor = trainer("high", gpus=8, priority=10)
    turning.queue.add(servers.on(preemptor, "", nominated_node_name="a"), 0.0)
    popped = turning.queue.pop(0.0)
    assert popped is not None
    turning.turn(trainer("low", gpus=1))
    assert turning.binds == []
