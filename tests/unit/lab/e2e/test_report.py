"""Comparing both schedulers, with each other and with the page that lists the outcomes."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from numalign.api.errors import BadObject
from numalign.lab.e2e import report
from numalign.lab.e2e.report import E2EReport, SuiteRun
from numalign.lab.e2e.suite import Outcome, SpecResult

DOCUMENTED = Path(__file__).parents[4] / "docs" / "compatibility" / "upstream-e2e.md"
PAGE = """\
# Tests

| test | kube-scheduler | numalign | note |
|---|---|---|---|
| A [Serial] | passed | passed | |
| B | passed | failed | numalign cannot do this |

The end.
"""


def result(name: str, outcome: Outcome, why: str = "") -> SpecResult:
    return SpecResult(name=f"[sig-scheduling] {name}", outcome=outcome, seconds=1.0, why=why)


def compared(stock: dict[str, Outcome], ours: dict[str, Outcome], why: str = "") -> E2EReport:
    runs = [
        SuiteRun(scheduler="stock", results=tuple(result(name, outcome) for name, outcome in stock.items())),
        SuiteRun(scheduler="numalign", results=tuple(result(name, outcome, why) for name, outcome in ours.items())),
    ]
    return report.of("v1.37.1", [run for run in runs if run.results])


TRUE = compared({"A [Serial]": "passed", "B": "passed"}, {"A [Serial]": "passed", "B": "failed"})


def test_what_only_kube_scheduler_passes_is_worse() -> None:
    outcomes: dict[str, Outcome] = {"A": "passed", "B": "failed", "C": "passed", "D": "skipped"}
    found = compared(outcomes, {**outcomes, "C": "failed"})
    assert found.worse == ("C",)


def test_one_scheduler_alone_is_compared_with_nothing() -> None:
    assert compared({}, {"A": "failed"}).worse == ()


def test_tags_of_features_are_left_out_of_names() -> None:
    found = compared({"A [Feature:X] [FeatureGate:X] [Beta] [Serial]": "passed"}, {})
    assert found.tests[0].test == "A [Serial]"


def test_a_page_that_is_true_has_no_differences() -> None:
    assert report.differences(TRUE, PAGE, "page") == ()


@pytest.mark.parametrize(
    "ours, expected",
    [
        ({"A [Serial]": "failed", "B": "failed"}, "A [Serial]: numalign failed, the page says passed"),
        ({"A [Serial]": "passed", "B": "passed"}, "B: numalign passed, the page says failed"),
        ({"A [Serial]": "passed", "B": "failed", "C": "passed"}, "C is not listed"),
        ({"A [Serial]": "passed"}, "B is listed and does not exist"),
    ],
)
def test_what_is_not_true_any_more_is_named(ours: dict[str, Outcome], expected: str) -> None:
    assert expected in report.differences(compared({}, ours), PAGE, "page")


def test_a_test_that_does_not_pass_needs_a_note() -> None:
    page = PAGE.replace("numalign cannot do this ", "")
    assert report.differences(TRUE, page, "page") == ("B: has no note that says why it is failed",)


def test_a_written_page_is_true_and_keeps_its_notes_and_its_text() -> None:
    now = compared(
        {"A [Serial]": "failed", "C | D": "passed"}, {"A [Serial]": "passed", "C | D": "not run"}, "needs it"
    )
    written = report.updated(now, PAGE, "page")
    assert report.differences(now, written, "page") == ()
    assert written.startswith("# Tests\n\n| test ")
    assert written.endswith("|\n\nThe end.\n")
    assert [row.note for row in report.rows(written, "page")] == ["", "needs it"]
    assert report.updated(now, written, "page") == written


def test_outcomes_of_the_scheduler_that_did_not_run_stay() -> None:
    written = report.updated(compared({}, {"A [Serial]": "passed", "B": "passed"}), PAGE, "page")
    assert report.rows(written, "page")[1] == report.Row("B", "passed", "passed", "numalign cannot do this")


def test_a_row_of_a_new_test_has_all_its_cells_also_the_empty_ones() -> None:
    written = report.updated(compared({}, {"E": "passed"}), PAGE, "page")
    assert report.rows(written, "page") == [report.Row("E", "", "passed", "")]


@pytest.mark.parametrize("page", ["", "# Tests\n", PAGE.replace("|---|---|---|---|\n", "")])
def test_a_page_without_the_table_is_refused(page: str) -> None:
    with pytest.raises(BadObject, match="has no table that begins with"):
        report.rows(page, "page")


def test_a_row_with_too_few_cells_is_refused() -> None:
    with pytest.raises(BadObject, match="has 3 cells; use 4"):
        report.rows(PAGE.replace("| passed | passed | |", "| passed | passed |"), "page")


def test_the_summary_names_every_failure_and_counts() -> None:
    shown = report.text(compared({"A": "passed", "B": "passed"}, {"A": "passed", "B": "failed"}, "it timed out"))
    assert "FAILED: B: it timed out" in shown
    assert shown.endswith("stock: 2 of 2 passed, numalign: 1 of 2 passed; 1 pass on kube-scheduler only")


def test_the_page_in_the_documentation_explains_every_test_that_numalign_does_not_pass() -> None:
    """`make test-e2e` compares it with what the tests say."""
    rows = report.rows(DOCUMENTED.read_text(), DOCUMENTED.name)
    assert len({row.test for row in rows}) == len(rows) > 30
    assert {outcome for row in rows for outcome in (row.stock, row.numalign)} <= set(get_args(Outcome))
    assert [row.test for row in rows if row.numalign != "passed" and not row.note] == []
