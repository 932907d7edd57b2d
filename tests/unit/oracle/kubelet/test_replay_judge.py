"""Judging the model by what the real code answered, said to be unable to, or did not survive."""

from typing import Any

import msgspec
import pytest

from numalign.kubelet.refusals import Undecided
from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import replay
from tests.oracle import recordings

NEWEST = Minor(1, 38)
MERGE = recordings.cases("tm_merge")["merge-01913"]
LIVELOCK = recordings.cases("cpu_livelock")["cpu-livelock-0"]
SPINS: dict[str, Any] = {
    **{key: LIVELOCK[key] for key in ("id", "options", "tm_policy", "num_reserved", "reserved_cpus", "default")},
    "topology": {"name": "x", "num_cpus": 0, "num_sockets": 0, "numa": []},
    "assignments": LIVELOCK["assignments"],
    "pod": LIVELOCK["pod"],
    "steps": [{"container": "c0", "affinity": LIVELOCK["affinity"]}],
}


def spinning() -> dict[str, Any]:
    table = recordings.topologies()
    return {**SPINS, "topology": msgspec.to_builtins(table[LIVELOCK["topology"]])}


def test_equal_answers_agree() -> None:
    assert replay.judge_case(MERGE, MERGE, NEWEST).finding == "agreed"


def test_other_answers_differ_and_say_where() -> None:
    judged = replay.judge_case(MERGE, {**MERGE, "admit": not MERGE["admit"]}, NEWEST)
    assert judged.finding == "differs"
    assert [difference.path for difference in judged.differences] == ["admit"]


@pytest.mark.parametrize("silence", ["nondeterministic", "refused"])
def test_what_the_real_code_has_no_one_answer_to_is_not_compared(silence: str) -> None:
    assert replay.judge_case(MERGE, {"id": "x", silence: True}, NEWEST).finding == "unanswered"


def test_a_livelock_that_the_model_names_is_deliberate() -> None:
    assert replay.judge_case(spinning(), {"id": "x", "timeout": True}, NEWEST).finding == "deliberate"


def test_a_livelock_that_the_model_does_not_see_is_a_disagreement() -> None:
    assert replay.judge_case(MERGE, {"id": "x", "timeout": True}, NEWEST).finding == "differs"


def test_a_crash_that_the_model_does_not_see_is_a_disagreement() -> None:
    assert replay.judge_case(MERGE, {"id": "x", "panic": "nil"}, NEWEST).finding == "differs"


def test_a_program_that_could_not_read_the_case_is_a_disagreement() -> None:
    judged = replay.judge_case(MERGE, {"error": "no such family"}, NEWEST)
    assert judged.differences[0].expected == "no such family"


def test_every_deliberate_difference_has_a_reason() -> None:
    assert all(each.reason for each in replay.DELIBERATE)


def test_a_model_beyond_its_budget_is_undecided_and_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object) -> None:
        raise Undecided("the kubelet would try every combination of zones", 4_900)

    monkeypatch.setattr("numalign.kubelet.topologymanager.policies.merge", give_up)
    assert replay.judge_case(MERGE, MERGE, NEWEST).finding == "undecided"


def test_a_model_that_wrongly_sees_a_livelock_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*_: object) -> None:
        raise Undecided("the kubelet never returns")

    monkeypatch.setattr("numalign.kubelet.topologymanager.policies.merge", spin)
    assert replay.judge_case(MERGE, MERGE, NEWEST).finding == "differs"
