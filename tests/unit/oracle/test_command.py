from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from numalign.cli.devkit import oracle
from numalign.oracle.fuzz import FuzzSummary
from tests.unit.oracle import small

WRONG = {**small.MERGE, "id": "merge-2", "admit": False}


def run(*words: object) -> Result:
    return CliRunner().invoke(oracle.app, ["replay", *map(str, words)])


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return small.with_table(small.lines(tmp_path / "right.jsonl", small.MERGE, small.CPU))


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    many = [{**WRONG, "id": f"merge-{number}"} for number in range(2, 9)]
    return small.lines(tmp_path / "wrong.jsonl", *many)


def test_the_last_line_counts_cases_and_mismatches(right: Path) -> None:
    result = run(right)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "family        cases  mismatches",
        "tm_merge          1           0",
        "cpu_static        1           0",
        "2 cases, 0 mismatches",
    ]


def test_counts_add_up_over_files_and_any_mismatch_fails(right: Path, wrong: Path) -> None:
    result = run(right, wrong)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "9 cases, 7 mismatches"


def test_a_mismatch_is_shown_with_path_expected_and_answered(tmp_path: Path) -> None:
    path = small.lines(tmp_path / "wrong.jsonl", WRONG)
    assert run(path).stdout.splitlines()[:5] == [
        f"tm_merge merge-2  ({path}, line 1)",
        "  admit",
        "    expected  false",
        "    answered  true",
        "",
    ]


def test_what_is_missing_on_one_side_is_shown_as_nothing(tmp_path: Path) -> None:
    result = run(small.lines(tmp_path / "more.jsonl", {**small.MERGE, "more": {"of": "it"}}))
    assert result.exit_code == 1
    assert '  more\n    expected  {"of":"it"}\n    answered  (nothing)\n' in result.stdout


@pytest.mark.parametrize("words, shown", [((), 5), (("--show", 1), 1), (("--show", 0), 0), (("--show", 9), 7)])
def test_only_the_first_mismatches_are_shown(wrong: Path, words: tuple[object, ...], shown: int) -> None:
    assert run(wrong, *words).stdout.count("answered  true") == shown


def test_a_case_that_is_wrong_all_over_does_not_flood_the_terminal(tmp_path: Path) -> None:
    providers: list[Any] = [{"cpu": [{"mask": [1], "preferred": True, "x" * 300: 1}]} for _ in range(30)]
    result = run(small.lines(tmp_path / "flood.jsonl", {**small.MERGE, "providers": providers}))
    assert "  ... and 20 more differences" in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 220


@pytest.mark.parametrize("fmt, parse", [("json", json.loads), ("yaml", yaml.safe_load)])
def test_structured_output_lists_every_difference(wrong: Path, fmt: str, parse: Any) -> None:
    result = run(wrong, "-o", fmt)
    told = parse(result.stdout)
    assert result.exit_code == 1
    assert (told["cases"], told["mismatches"]) == (7, 7)
    assert told["families"] == {"tm_merge": {"cases": 7, "mismatches": 7}}
    assert [each["case"] for each in told["differences"]] == [f"merge-{number}" for number in range(2, 9)]


def test_structured_output_leaves_out_the_side_that_has_nothing(tmp_path: Path) -> None:
    path = small.lines(tmp_path / "more.jsonl", {**small.MERGE, "more": 1})
    (told,) = json.loads(run(path, "-o", "json").stdout)["differences"]
    assert told == {
        "family": "tm_merge",
        "case": "merge-1",
        "where": f"{path}, line 1",
        "path": "more",
        "expected": 1,
    }


def test_bad_input_is_told_on_stderr_before_anything_is_replayed(right: Path, tmp_path: Path) -> None:
    result = run(right, tmp_path / "missing.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "missing.jsonl: No such file or directory" in result.stderr


def test_a_file_name_may_be_any_bytes(tmp_path: Path) -> None:
    result = run(tmp_path / os.fsdecode(b"\xff.jsonl"))
    assert result.exit_code == 2
    assert "\N{REPLACEMENT CHARACTER}.jsonl: No such file" in result.stderr


def test_a_command_without_files_is_a_usage_error() -> None:
    assert run().exit_code == 2


def test_whoever_waits_at_a_terminal_sees_progress(wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(oracle, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(oracle, "is_watched", lambda: True)
    result = run(wrong)
    assert "2 of 7 cases" in result.stderr
    assert "of 7 cases" not in result.stdout


def test_nobody_at_a_terminal_sees_no_progress(wrong: Path) -> None:
    assert run(wrong).stderr == ""


def test_a_long_campaign_says_how_far_it_is_even_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter((0.0, 30.0, 61.0, 61.0, 90.0))
    monkeypatch.setattr(oracle, "monotonic", lambda: next(clock))
    watch = oracle._watching(9)
    for _ in range(3):
        watch(FuzzSummary(counts=Counter({("tm_merge", "agreed"): 4})))
    assert capsys.readouterr().err == "4 of 9 cases, 0 disagreements\n"
