"""The benchmark harness: one table for every question, and an exit code that says whether the goals are met."""

import importlib
import json
import math
from collections.abc import Iterable

import pytest

from benchmarks import __main__ as harness
from benchmarks import table, timing

QUICK = table.Row(name="quick", ours=1.0, peer=4.0, unit="ms", goal=2.0)
SLOW = table.Row(name="slow", ours=3.0, peer=4.0, unit="ms", goal=2.0)
ANSWERS = {"admission": [QUICK], "replay": [QUICK, SLOW]}

RATIOS = {
    "a time, shorter": (table.Row(name="", ours=2, peer=6, unit="s"), 3.0),
    "a rate, higher": (table.Row(name="", ours=6, peer=2, unit="pods/s", higher_is_better=True), 3.0),
    "a rate, lower": (table.Row(name="", ours=1, peer=2, unit="pods/s", higher_is_better=True), 0.5),
    "a count, none allowed and none seen": (table.Row(name="", ours=0, peer=0, unit="differences"), 1.0),
    "a count, some allowed and none seen": (table.Row(name="", ours=0, peer=3, unit="differences"), math.inf),
    "a count, none allowed and one seen": (table.Row(name="", ours=1, peer=0, unit="differences"), 0.0),
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(question: str) -> Iterable[table.Row]:
        return ANSWERS[question]

    monkeypatch.setattr(harness, "questions", lambda: sorted(ANSWERS))
    monkeypatch.setattr(harness, "ask", ask)


@pytest.mark.parametrize("row, ratio", RATIOS.values(), ids=RATIOS)
def test_ratio_says_how_many_times_better(row: table.Row, ratio: float) -> None:
    assert row.ratio == ratio


@pytest.mark.parametrize("goal, met", [(1.99, True), (2.0, True), (2.01, False)])
def test_a_goal_is_the_least_ratio(goal: float, met: bool) -> None:
    assert table.Row(name="", ours=1, peer=2, unit="s", goal=goal).met is met


def test_text_aligns_values_under_their_headers() -> None:
    assert table.text([QUICK, SLOW]).splitlines() == [
        "name   ours  peer  ratio  goal  met",
        "quick  1 ms  4 ms   4.00  2.00  yes",
        "slow   3 ms  4 ms   1.33  2.00   NO",
    ]


def test_json_carries_the_same_columns_and_the_unit() -> None:
    (record,) = json.loads(table.json([SLOW]))
    assert set(table.HEADERS) | {"unit"} <= record.keys()
    assert (record["ratio"], record["met"]) == (pytest.approx(4 / 3), False)


def test_json_stays_valid_for_an_endless_ratio() -> None:
    assert json.loads(table.json([table.Row(name="none", ours=0, peer=1, unit="s")]))[0]["ratio"] is None


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("arguments, code", [(["--name", "admission"], 0), (["--name", "replay"], 1), ([], 1)])
def test_exit_code_tells_a_missed_goal(arguments: list[str], code: int) -> None:
    assert harness.main(arguments) == code


@pytest.mark.usefixtures("answers")
def test_all_questions_are_asked_unless_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    harness.main(["--format", "json"])
    assert [record["name"] for record in json.loads(capsys.readouterr().out)] == ["quick", "quick", "slow"]


@pytest.mark.usefixtures("answers")
def test_an_unknown_question_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        harness.main(["--name", "unknown"])
    complaint = capsys.readouterr().err
    assert all(question in complaint for question in ANSWERS)


def test_every_question_beside_the_harness_can_be_asked() -> None:
    for question in harness.questions():
        module = importlib.import_module(f"benchmarks.{question}")
        assert module.__doc__
        assert callable(module.rows)


def test_best_of_runs_the_call_as_often_as_asked() -> None:
    calls: list[int] = []
    assert timing.best_of(lambda: calls.append(1), runs=3) >= 0
    assert len(calls) == 3
