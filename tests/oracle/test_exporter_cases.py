"""Recorded cases of the nodes' publishers get the recorded answer, or differ for a reason that is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.oracle.suites import judging
from numalign.oracle.suites.judging import Outcome
from tests.oracle import exportercases
from tests.oracle.test_plugin_cases import ANCHORS, unnoticed

FREE_TEXT = {"leb89.malformed_derived"}
"""Suites without an expectation but that nothing is made of the input."""
LONG = 4000

files = pytest.mark.parametrize("path", exportercases.FILES.values(), ids=exportercases.FILES)


@files
def test_every_case_is_answered_as_recorded_or_differs_for_a_reason(path: Path) -> None:
    report = judging.summed(map(judging.judge, exportercases.cases(path)))
    assert [(each.recorded.suite, each.recorded.id, each.differences) for each in report.mismatches] == []


@files
def test_every_reason_is_on_the_compatibility_page(path: Path) -> None:
    intended = [each for each in map(judging.judge, exportercases.cases(path)) if each.outcome is Outcome.DELIBERATE]
    assert {each.anchor for each in intended} <= ANCHORS


@files
def test_a_wrong_expectation_is_noticed(path: Path) -> None:
    equal = [each for each in exportercases.cases(path) if judging.judge(each).outcome is Outcome.EQUAL]
    telling = [each for each in equal if each.suite not in FREE_TEXT and len(str(each.case["expect"])) < LONG]
    # A column that is not there is one that the table did not have for this row.
    missed = [
        (each.suite, each.id, wrong)
        for each in telling
        for wrong in unnoticed(each)
        if wrong.keys() == each.case["expect"].keys()
    ]
    assert missed == []


def test_the_repository_carries_enough_cases() -> None:
    carried = [each for each in exportercases.cases(exportercases.VENDORED) if "derived" in each.suite]
    assert len(carried) >= 17
