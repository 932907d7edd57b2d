"""Recorded cases put to a real kubelet: here to programs that pretend to be one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from numalign.cli.devkit import oracle
from numalign.lab.errors import LabError
from numalign.oracle import sources
from numalign.oracle.harness import ask
from numalign.oracle.harness.ask import OracleProgram
from numalign.oracle.kubelet import replay, vectors
from tests.oracle import recordings
from tests.unit.oracle import pretending, small

Run = Callable[..., Result]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return small.lines(tmp_path / "merge.jsonl", small.MERGE, {**small.MERGE, "id": "merge-2"})


def reasked(folder: Path, answer: str, *files: Path) -> list[replay.ReaskedCase]:
    path = pretending.program(folder, answer)
    with OracleProgram(path, ask.ONCE) as once, OracleProgram(path, ask.SURELY) as sure:
        pair = ask.ProgramPair(once, sure, sources.kubelet("kubelet@1.37").judge)
        return list(replay.reask(pair, vectors.load(files)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(answer: str, *words: object) -> Result:
        monkeypatch.setattr(sources.Source, "program", lambda self: pretending.program(tmp_path, answer))
        return CliRunner().invoke(oracle.app, ["replay", *map(str, words), "--against", "kubelet@1.37"])

    return run


def test_the_same_answer_is_no_difference(tmp_path: Path, files: Path) -> None:
    for each in reasked(tmp_path, pretending.AS_RECORDED, files):
        assert (each.differences, each.model_agrees) == ((), True)


def test_another_answer_differs_from_recording_and_model(tmp_path: Path, files: Path) -> None:
    first, _ = reasked(tmp_path, pretending.OTHERWISE, files)
    assert [each.path for each in first.differences] == ["admit"]
    assert (first.differences[0].expected, first.differences[0].answered) == (True, False)
    assert not first.model_agrees


def test_an_answer_that_varies_when_asked_again_is_none(tmp_path: Path, files: Path) -> None:
    for each in reasked(tmp_path, pretending.NEVER_THE_SAME, files):
        assert (each.is_answered, each.differences) == (False, ())


def test_a_slow_answer_is_waited_for(tmp_path: Path, files: Path) -> None:
    for each in reasked(tmp_path, pretending.SLOW, files):
        assert (each.differences, each.model_agrees) == ((), True)


def test_machines_that_are_only_named_are_sent_along(tmp_path: Path) -> None:
    files = small.with_table(small.lines(tmp_path / "cpu.jsonl", small.CPU))
    (each,) = reasked(tmp_path, pretending.AS_RECORDED, files)
    assert each.judged.case["topology"] == small.FOUR | {"numa": each.judged.case["topology"]["numa"]}
    assert (each.differences, each.model_agrees) == ((), True)


def test_a_livelock_is_asked_about_as_an_allocation_and_has_to_spin(tmp_path: Path) -> None:
    (each,) = reasked(tmp_path, pretending.SPINS, recordings.file("cpu_livelock"))
    assert each.judged.family == "cpu_static"
    assert (each.differences, each.model_agrees) == ((), True)


def test_agreement_is_exit_code_0(run: Run, files: Path) -> None:
    result = run(pretending.AS_RECORDED, files)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "2 cases, 0 mismatches")


def test_a_difference_is_shown_with_both_answers_and_the_models_word(run: Run, files: Path) -> None:
    result = run(pretending.OTHERWISE, files, "--show", 1)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:7] == [
        f"tm_merge merge-1  ({files}, line 1)",
        "  admit",
        "    recorded  true",
        "    real      false",
        "  the model of 1.37: differs, admit: true",
        "",
        "... and 1 more cases",
    ]
    assert result.stdout.splitlines()[-1] == "2 cases, 2 mismatches"


def test_what_has_no_one_answer_is_not_counted(run: Run, files: Path) -> None:
    result = run(pretending.NEVER_THE_SAME, files)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "0 cases, 0 mismatches")


def test_structured_output_lists_every_difference(run: Run, files: Path) -> None:
    told: dict[str, Any] = json.loads(run(pretending.OTHERWISE, files, "-o", "json").stdout)
    assert (told["against"], told["cases"], told["mismatches"], told["model_differs"]) == ("1.37", 2, 2, 2)
    assert told["differences"][0] == {
        "family": "tm_merge",
        "case": "merge-1",
        "where": f"{files}, line 1",
        "path": "admit",
        "recorded": True,
        "real": False,
        "model": "differs",
    }


def test_a_kubelet_that_nobody_knows_is_refused(files: Path) -> None:
    result = CliRunner().invoke(oracle.app, ["replay", str(files), "--against", "kubelet@1.20"])
    assert result.exit_code == 2
    assert "kubelet@1.20, against: unknown; known are kubelet and kubelet@1.34" in result.stderr


def test_a_program_that_cannot_be_built_is_told(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> Path:
        raise LabError("no Go 1.26 or newer found")

    monkeypatch.setattr(sources.Source, "program", fail)
    result = CliRunner().invoke(oracle.app, ["replay", str(files), "--against", "kubelet"])
    assert (result.exit_code, result.stderr) == (2, "numalign: no Go 1.26 or newer found\n")
