"""The trace of a pod: its steps follow each other without a gap, under the id that the log has, too."""

from __future__ import annotations

from uuid import UUID

import pytest

from numalign.api.objects.meta import ObjectMeta
from numalign.process.traces import Span
from numalign.scheduler.events import podhistory, podtraces
from numalign.scheduler.events.podhistory import PodHistories
from numalign.scheduler.events.podtraces import PodTraces, Tracing
from tests.unit.kube.clocks import START, HandClock

UID = "678a5aa3-3b6f-4507-8c5f-e8f8dc3bf364"
AT_ZERO = START.timestamp()


class Traced:
    """Histories whose entries become spans."""

    def __init__(self, ratio: float = 1.0) -> None:
        self.clock = HandClock()
        self.spans: list[Span] = []
        self.traces = PodTraces(Tracing(self.spans.append, ratio), self.clock)
        self.histories = PodHistories(self.clock.now, observer=self.traces.noted)

    def at(self, time: float, what: str, uid: str = UID, **fields: object) -> None:
        self.clock.time = time
        self.histories.record(ObjectMeta(name="web", namespace="default", uid=uid), what, **fields)

    def steps(self) -> list[tuple[str, float, float]]:
        return [(each.name, each.start - AT_ZERO, each.end - AT_ZERO) for each in self.spans]


def placed(answer: str = podhistory.STARTED) -> Traced:
    traced = Traced()
    traced.at(0, podhistory.QUEUED, priority=0)
    traced.traces.begins(UID, 1.0)
    traced.at(2, "unschedulable", attempt=1, after="UnscheduledPodAdd", why="0/3 nodes are available")
    traced.traces.begins(UID, 5.0)
    traced.traces.chose(UID, {"filter": 0.5, "score": 0.25})
    traced.at(6, podhistory.SELECTED, attempt=2, after="NodeAdd", node="a")
    traced.at(8, podhistory.BOUND, node="a")
    traced.at(8.5, podhistory.CONFIRMED, node="a")
    traced.at(10, answer, node="a")
    return traced


def test_the_steps_of_a_pod_follow_each_other_from_the_queue_to_the_kubelet() -> None:
    assert placed().steps() == [
        ("queue", 0, 1),
        ("attempt", 1, 2),
        ("queue", 2, 5),
        ("attempt", 5, 6),
        ("filter", 5, 5.5),
        ("score", 5.5, 5.75),
        ("binding", 6, 8),
        ("binding confirmed", 8.5, 8.5),
        ("kubelet", 8, 10),
        ("pod", 0, 10),
    ]


def test_the_trace_id_is_the_uid_and_every_step_hangs_on_the_pod() -> None:
    spans = placed().spans
    assert {each.trace for each in spans} == {UUID(UID).int}
    whole = spans[-1]
    assert (whole.name, whole.parent) == ("pod", 0)
    attempt = spans[3]
    assert {each.name for each in spans if each.parent == attempt.number} == {"filter", "score"}
    assert all(each.parent == whole.number for each in spans[:-1] if each.name not in ("filter", "score"))
    assert len({each.number for each in spans}) == len(spans)


def test_spans_name_the_pod_the_node_and_why_no_node_was_found() -> None:
    spans = placed().spans
    assert all(each.attributes["k8s.pod.name"] == "web" for each in spans)
    assert all(each.attributes["k8s.namespace.name"] == "default" for each in spans)
    assert spans[1].attributes["numalign.why"] == "0/3 nodes are available"
    assert spans[3].attributes["k8s.node.name"] == "a"


@pytest.mark.parametrize(
    "answer, error",
    [(podhistory.STARTED, ""), (podhistory.REJECTED, podhistory.REJECTED), (podhistory.DELETED, "")],
)
def test_only_a_rejection_is_an_error(answer: str, error: str) -> None:
    traced = placed(answer)
    assert traced.spans[-1].error == error
    assert not traced.traces.follows(UID)


def test_a_binding_that_failed_is_an_error_and_the_pod_waits_again() -> None:
    traced = Traced()
    traced.at(0, podhistory.QUEUED)
    traced.traces.begins(UID, 1.0)
    traced.at(1, podhistory.SELECTED, attempt=1, node="a")
    traced.at(2, podhistory.FAILED, node="a", why="conflict")
    traced.traces.begins(UID, 4.0)
    traced.at(4, podhistory.SELECTED, attempt=2, node="b")
    assert traced.steps()[2:] == [("binding", 1, 2), ("queue", 2, 4), ("attempt", 4, 4)]
    assert traced.spans[2].error == podhistory.FAILED


def test_pods_that_are_not_of_the_share_and_pods_that_were_placed_before_have_no_spans() -> None:
    unsampled, late = Traced(ratio=0.0), Traced()
    unsampled.at(0, podhistory.QUEUED)
    unsampled.at(1, podhistory.SELECTED, attempt=1)
    late.at(0, podhistory.STARTED)
    assert (unsampled.spans, late.spans) == ([], [])


def test_pods_without_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podtraces, "MOST_PODS", 2)
    traced = Traced()
    for number in range(3):
        traced.at(number, podhistory.QUEUED, uid=f"static-{number}")
    assert [traced.traces.follows(f"static-{number}") for number in range(3)] == [False, True, True]
