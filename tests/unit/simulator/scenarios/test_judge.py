"""The judge reads histories: it counts, and it knows what may never happen."""

import pytest

from numalign.simulator.scenarios import history, judge
from numalign.simulator.scenarios.history import HistoryEntry
from numalign.simulator.scenarios.judge import Violation
from numalign.simulator.scenarios.scenario import Expectation
from tests import histories


def line(what: history.What, at: float = 0.0, pod: str = "a", node: str = "", **more: str) -> HistoryEntry:
    return HistoryEntry(at=at, what=what, name=pod, namespace="default", uid=f"uid-{pod}", node=node, **more)


NODE = HistoryEntry(at=0.0, what="node", name="n")
RUN = [NODE, line("created"), line("bound", 1.0, node="n"), line("started", 3.0, node="n")]


def test_a_pod_that_runs_is_counted_and_its_wait_measured() -> None:
    found = judge.measures(RUN)
    assert (found["created"], found["bound"], found["running"], found["longest-wait"]) == (1, 1, 1, 3.0)
    assert judge.broken(RUN) == []


@pytest.mark.parametrize("end", ["finished", "failed", "deleted"])
def test_what_ended_does_not_run(end: history.What) -> None:
    assert judge.measures([*RUN, line(end, 9.0, node="n")])["running"] == 0


def test_a_storm_of_rejections_is_counted_by_owner() -> None:
    storm = [line("rejected", at, f"p{at}", "n", owner="web", why="TopologyAffinityError") for at in (1.0, 2.0, 5.0)]
    found = judge.measures([*storm, line("rejected", 3.0, "b", "n", why="OutOfcpu")])
    assert (found["rejected"], found["misaligned"], found["most-rejected"]) == (4, 3, 3)


def test_what_has_no_node_is_pending() -> None:
    assert judge.measures([NODE, line("created")])["pending"] == 1


def test_every_measure_has_words_and_a_number() -> None:
    assert set(judge.measures([])) == set(judge.MEASURES)


BROKEN = {
    "bound twice": ([*RUN, line("bound", 4.0, node="n")], "pod default/a was bound twice: to n and to n"),
    "bound to nowhere": (
        [line("created"), line("bound", node="m")],
        "pod default/a was bound to m, which is not there",
    ),
    "bound to what is gone": (
        [NODE, HistoryEntry(at=1.0, what="node-gone", name="n"), line("bound", 2.0, node="n")],
        "pod default/a was bound to n, which is not there",
    ),
}


@pytest.mark.parametrize("lines, words", BROKEN.values(), ids=BROKEN)
def test_what_may_never_happen(lines: list[HistoryEntry], words: str) -> None:
    assert judge.broken(lines) == [Violation("", words)]


def test_an_expectation_that_was_missed_says_what_was_found() -> None:
    expected = [Expectation("rejected", "==", 0), Expectation("bound", ">=", 1)]
    (missed,) = judge.missed(expected, judge.measures([*RUN, line("rejected")]))
    assert str(missed) == "rejected == 0: it was 1"


def test_a_history_can_be_kept_and_read_again() -> None:
    assert histories.read(history.encode(RUN), HistoryEntry) == RUN


STEPS = {
    "bound": ({"spec": {}}, {"spec": {"nodeName": "n"}}, [("bound", "", "")]),
    "rejected": (
        {"spec": {}, "status": {"phase": "Pending"}},
        {"spec": {}, "status": {"phase": "Failed", "reason": "TopologyAffinityError", "message": "no"}},
        [("rejected", "TopologyAffinityError", "no")],
    ),
    "failed after it ran": (
        {"spec": {}, "status": {"phase": "Running"}},
        {"spec": {}, "status": {"phase": "Failed", "containerStatuses": [{}]}},
        [("failed", "", "")],
    ),
    "no place": (
        {"spec": {}},
        {
            "spec": {},
            "status": {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
                ]
            },
        },
        [("refused", "Unschedulable", "0/1 nodes")],
    ),
    "nothing new": ({"spec": {"nodeName": "n"}}, {"spec": {"nodeName": "n"}}, []),
}


@pytest.mark.parametrize("before, after, steps", STEPS.values(), ids=STEPS)
def test_what_a_pod_went_through(before: dict[str, object], after: dict[str, object], steps: list[object]) -> None:
    assert list(history.steps(before, after)) == steps
