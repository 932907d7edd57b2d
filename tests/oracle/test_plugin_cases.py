"""Recorded cases of the reference plugin get the recorded answer, or differ for a reason that is written down.

And no wrong expectation passes: whatever is changed in one, judging it again notices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numalign.oracle import recorded as judging
from numalign.oracle import recorded as recordedsuites
from numalign.oracle.harness.suite import Outcome
from numalign.oracle.recorded import RecordedCase
from tests.oracle import plugincases

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "\n".join(path.read_text() for path in sorted((DOCS / "compatibility").glob("*.md")))
ANCHORS = set(re.findall(r"^#+ ([a-z0-9-]+)$", PAGES, re.MULTILINE))

FREE_TEXT = {"integration_cache": {"note"}, "tm.merge": {"reasons", "unsatisfied"}, "numa.allocate": {"error"}}
"""Parts of expectations that are for people, or that only the other project's code has."""

files = pytest.mark.parametrize("path", plugincases.FILES.values(), ids=plugincases.FILES)


def test_the_repository_carries_what_was_recorded_from_the_plugin() -> None:
    assert Counter(each.suite for each in plugincases.cases(plugincases.VENDORED)) == plugincases.VENDORED_COUNTS


@files
def test_every_case_is_answered_as_recorded_or_differs_for_a_reason(path: Path) -> None:
    report = judging.summed(map(judging.judge, plugincases.cases(path)))
    assert [(each.recorded.id, each.differences) for each in report.mismatches] == []
    assert report.cases == len(plugincases.cases(path))


@files
def test_behaviour_is_always_compared(path: Path) -> None:
    left_out = {each.suite for each in plugincases.cases(path) if each.suite in recordedsuites.NOT_APPLICABLE}
    assert [suite for suite in left_out if suite.startswith(plugincases.BEHAVIOUR)] == []


@files
def test_every_reason_is_on_the_compatibility_page_with_the_case_that_shows_it(path: Path) -> None:
    intended = [each for each in map(judging.judge, plugincases.cases(path)) if each.outcome is Outcome.DELIBERATE]
    assert {each.anchor for each in intended} <= ANCHORS


def test_every_rule_is_on_the_compatibility_page() -> None:
    rules = {rule.anchor for suite in recordedsuites.SUITES.values() for rule in suite.deliberate}
    assert rules <= ANCHORS


def test_every_suite_without_a_counterpart_is_on_the_compatibility_page() -> None:
    assert [name for name in recordedsuites.NOT_APPLICABLE if f"`{name}`" not in PAGES] == []


def wrong(value: Any) -> Iterator[Any]:
    """The value with one thing changed, for every thing in it."""
    match value:
        case dict():
            for key, each in value.items():
                yield {name: value[name] for name in value if name != key}
                yield from ({**value, key: changed} for changed in wrong(each))
        case list():
            yield [*value, value[-1] if value else "more"]
            for place, each in enumerate(value):
                yield from ([*value[:place], changed, *value[place + 1 :]] for changed in wrong(each))
        case bool():
            yield not value
        case int():
            yield from (value + 1, value - 1)
        case str():
            yield f"{value}x"
        case None:
            yield 0


def preferred(expect: dict[str, Any]) -> dict[str, Any]:
    """Hints without those that are not preferred: direct mode asks only which zones are best."""
    hints = expect.get("hints", {})
    return {"hints": {resource: [hint[0] for hint in each if hint[-1] is True] for resource, each in hints.items()}}


def unnoticed(recorded: RecordedCase) -> list[Any]:
    free_text = FREE_TEXT.get(recorded.suite, ())
    expect = recorded.case["expect"]
    told = preferred if recorded.suite == "numa.hints" else dict
    expectations = [
        each
        for each in wrong(expect)
        if any(told(each).get(key) != told(expect)[key] for key in expect.keys() - free_text)
    ]
    changed = (structs.replace(recorded, case={**recorded.case, "expect": each}) for each in expectations)
    return [each.case["expect"] for each in changed if judging.judge(each).outcome is not Outcome.MISMATCH]


def answered(path: Path) -> dict[str, list[RecordedCase]]:
    by_suite: dict[str, list[RecordedCase]] = {}
    for recorded in plugincases.cases(path):
        if judging.judge(recorded).outcome is Outcome.EQUAL:
            by_suite.setdefault(recorded.suite, []).append(recorded)
    return by_suite


@files
def test_a_wrong_expectation_is_noticed(path: Path) -> None:
    telling = [recorded for found in answered(path).values() for recorded in found[:2]]
    assert {recorded.id: missed for recorded in telling if (missed := unnoticed(recorded))} == {}


@pytest.mark.slow
@files
def test_a_wrong_expectation_is_noticed_in_every_case(path: Path) -> None:
    every = [recorded for found in answered(path).values() for recorded in found]
    assert {recorded.id: missed for recorded in every if (missed := unnoticed(recorded))} == {}
