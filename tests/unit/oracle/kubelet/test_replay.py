from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Struct, structs

from numalign.kubelet.refusals import Undecided
from numalign.oracle.harness import divergence
from numalign.oracle.harness.divergence import Difference
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.kubelet import merge, replay, vectors
from numalign.oracle.kubelet.family import CaseOrigin
from numalign.oracle.kubelet.forms import Topologies, Topology
from numalign.oracle.kubelet.replay import FamilyTally, ReplayVerdict
from tests.oracle import recordings
from tests.unit.oracle import small

FAILED_RESTART = recordings.cases("sequence_podlevel")["seqpl-00247"]
LIVELOCK = recordings.cases("cpu_livelock")["cpu-livelock-0"]
DISTRIBUTED = recordings.cases("cpu_distribute")["cpud-00297"]
REFUSED_START = {
    **{key: FAILED_RESTART[key] for key in ("id", "topology", "config", "memory_nodes", "devices")},
    "config": {**FAILED_RESTART["config"], "cpu_policy": "none", "cpu_options": {"full-pcpus-only": "true"}},
    "init_error": "cpumanager start: new none policy error: "
    "None policy: received unsupported options=map[full-pcpus-only:true]",
}


def four() -> Topologies:
    return {"four": msgspec.convert(small.FOUR, Topology)}


def vector(case: Any, table: Callable[[], Topologies] = recordings.topologies) -> vectors.Vector:
    return vectors.of(RecordedValue("here", case, divergence.canonical(case)), table)


def paths(case: Any, table: Callable[[], Topologies] = recordings.topologies) -> list[str]:
    return [each.path for each in replay.judge(vector(case, table)).differences]


def failing(problem: Exception) -> ReplayVerdict:
    def answer(case: Struct, origin: CaseOrigin) -> Struct:
        raise problem

    return replay.judge(structs.replace(vector(small.MERGE), family=structs.replace(merge.FAMILY, answer=answer)))


@pytest.mark.parametrize("case", [small.MERGE, small.CPU], ids=["merge", "cpu"])
def test_a_case_with_the_right_answer_does_not_differ(case: Any) -> None:
    assert paths(case, four) == []


def test_a_wrong_expectation_is_told_with_both_sides() -> None:
    wrong = {**small.MERGE, "best": {"mask": [0], "preferred": True}}
    assert replay.judge(vector(wrong)).differences == (Difference("best.mask[0]", 0, 1),)


@pytest.mark.parametrize("key", ["best", "admit"])
def test_a_missing_expectation_differs(key: str) -> None:
    assert paths({name: value for name, value in small.MERGE.items() if name != key}) == [key]


@pytest.mark.parametrize(
    "problem, text",
    [
        (Undecided("the kubelet would enumerate every set of zones", 10**9), "Undecided: the kubelet would enumerate"),
        (KeyError("zone"), "KeyError: 'zone'"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
    ids=["undecided", "a defect", "a deep defect"],
)
def test_a_case_without_an_answer_is_a_mismatch(problem: Exception, text: str) -> None:
    (difference,) = failing(problem).differences
    assert (difference.path, difference.expected) == ("", UNSET)
    assert str(difference.answered).startswith(f"no answer: {text}")


def test_a_step_after_a_refused_one_differs() -> None:
    greedy = {"name": "a", "requests": {"cpu": "9", "memory": "1Mi"}, "limits": {"cpu": "9", "memory": "1Mi"}}
    pod = {**small.CPU["pod"], "containers": [greedy, small.CPU["pod"]["containers"][1]]}
    assert "steps[1]" in paths({**small.CPU, "pod": pod}, four)


@pytest.mark.parametrize("kept", [0, 1])
def test_a_container_without_a_step_differs(kept: int) -> None:
    assert f"steps[{kept}]" in paths({**small.CPU, "steps": small.CPU["steps"][:kept]}, four)


def test_removals_may_come_in_any_order_if_all_are_there() -> None:
    other = [{"container": "a", "default_after": "0-1"}, {"container": "b", "default_after": "0-3"}]
    assert paths({**small.CPU, "removals": other}, four) == []
    assert paths({**small.CPU, "removals": other[:1]}, four) == ["removals[1]"]
    assert paths({**small.CPU, "removals": [*other, other[0]]}, four) == ["removals[2]"]


def test_a_policy_that_starts_needs_a_pod() -> None:
    assert paths({key: value for key, value in small.CPU.items() if key != "pod"}, four) == [""]


def test_hints_that_were_not_recorded_must_not_be_there() -> None:
    assert paths({**DISTRIBUTED, "pod_hints": {}}) == ["pod_hints"]
    assert paths({**DISTRIBUTED, "removals": []}) == ["removals"]


def test_only_never_returning_is_right_for_a_livelock() -> None:
    assert paths(LIVELOCK) == []
    assert paths({**LIVELOCK, "options": {"distribute-cpus-across-numa": "true"}}) == ["expected"]


def test_nothing_may_follow_a_restart_that_failed() -> None:
    ops = FAILED_RESTART["ops"]
    assert paths({**FAILED_RESTART, "ops": [*ops, {"op": "remove", "uid": "x"}]}) == [f"ops[{len(ops)}]"]


@pytest.mark.parametrize("ops", [{}, {"ops": None}, {"ops": []}], ids=["left out", "null", "empty"])
def test_a_kubelet_that_does_not_start_has_no_life(ops: dict[str, Any]) -> None:
    assert paths({**REFUSED_START, **ops}) == []


def test_a_life_after_a_refused_start_differs() -> None:
    assert paths({**REFUSED_START, "ops": [{"op": "restart"}]}) == ["ops"]


def test_mismatches_are_counted_by_case_and_by_family() -> None:
    cases = [small.MERGE, {**small.MERGE, "admit": False, "best": None}, LIVELOCK]
    report = replay.summed(replay.replay(map(vector, cases)))
    assert report.total == FamilyTally(cases=3, mismatches=1)
    assert report.families == {"tm_merge": FamilyTally(2, 1), "cpu_livelock": FamilyTally(1, 0)}
    assert [len(verdict.differences) for verdict in report.diverged] == [2]
