"""`numalign lab e2e`: what it refuses before a lab starts, and what its exit code says of the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli import main
from numalign.cli.devkit import labs
from numalign.lab import preflight
from numalign.lab.e2e import report, run
from numalign.lab.e2e.report import SuiteRun
from numalign.lab.e2e.run import E2EOptions
from numalign.lab.e2e.suite import Outcome, SpecResult
from numalign.lab.errors import LabError
from numalign.lab.lab import Say
from numalign.lab.spec import LabSpec

PAGE = "| test | kube-scheduler | numalign | note |\n|---|---|---|---|\n| A | passed | passed | |\n"


def numalign(*words: str) -> Result:
    return CliRunner().invoke(main.app, ["lab", "e2e", *words])


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome, Outcome], None]:
    """Sets the outcomes of one test, in place of running it."""

    def set_outcomes(stock: Outcome, ours: Outcome) -> None:
        async def ran(asked: E2EOptions, say: Say) -> Sequence[SuiteRun]:
            found = {"stock": stock, "numalign": ours}
            tested = {name: SpecResult(name="[sig-scheduling] A", outcome=found[name]) for name in asked.schedulers}
            return [SuiteRun(scheduler=name, results=(result,)) for name, result in tested.items()]

        def allowed(_: LabSpec) -> None:
            pass

        monkeypatch.setattr(run, "run", ran)
        monkeypatch.setattr(labs, "require", allowed)

    return set_outcomes


Results = Callable[[Outcome, Outcome], None]


def test_the_exit_code_says_whether_kube_scheduler_passes_more(results: Results) -> None:
    results("passed", "passed")
    assert numalign().exit_code == 0
    results("failed", "failed")
    assert numalign().exit_code == 0
    results("passed", "failed")
    refused = numalign("-o", "json")
    assert (refused.exit_code, json.loads(refused.stdout)["worse"]) == (1, ["A"])


def test_a_page_that_is_not_true_fails_and_can_be_written_again(results: Results, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    results("passed", "passed")
    assert numalign("--page", str(page)).exit_code == 0
    results("failed", "passed")
    refused = numalign("--page", str(page))
    assert (refused.exit_code, "A: kube-scheduler failed, the page says passed" in refused.stdout) == (1, True)
    assert numalign("--page", str(page), "--write").exit_code == 0
    assert report.rows(page.read_text(), "page")[0].stock == "failed"


def test_a_test_that_does_not_pass_needs_a_note_also_after_the_page_was_written(
    results: Results, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    results("passed", "failed")
    assert numalign("--page", str(page), "--write").exit_code == 1
    page.write_text(page.read_text().replace("failed | |", "failed | It is not supported. |"))
    assert numalign("--page", str(page)).exit_code == 0


def test_a_lab_that_fails_is_no_result(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    results("passed", "passed")

    async def failed(asked: E2EOptions, say: Say) -> Sequence[SuiteRun]:
        raise LabError("etcd ended")

    monkeypatch.setattr(run, "run", failed)
    refused = numalign()
    assert (refused.exit_code, "etcd ended" in refused.output) == (1, True)


@pytest.mark.parametrize(
    "words, why",
    [
        (["--write"], "--write needs the file with the table; give --page FILE"),
        (["--focus", "("], "--focus '(' is not a regular expression"),
        (["--page", "missing.md"], "missing.md cannot be read"),
        (["--page", "binary.md"], "binary.md cannot be read"),
        (["--page", "empty.md"], "has no table that begins with"),
        (["--page", "empty.md", "--focus", "a"], "give either --focus or --page"),
        (["--scheduler", "other"], "other"),
        (["--name", "Not_A_Name"], "not a valid name"),
    ],
)
def test_bad_options_are_refused_before_a_lab_starts(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "missing", lambda *_, **__: "")
    Path("binary.md").write_bytes(b"\xff\xfe|\x00")
    Path("empty.md").touch()
    refused = numalign(*words)
    assert refused.exit_code == 2
    assert why in refused.output
