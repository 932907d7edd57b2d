"""Promises about all checks: ids, words, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from numalign.deploy.doctor import diagnosis, walk
from numalign.deploy.doctor.checks import Check, Severity
from numalign.deploy.doctor.diagnosis import CHECKS
from numalign.deploy.doctor.observed import Observed

PAGE = Path(__file__).parents[4] / "docs/use/doctor.md"
ROW = re.compile(r"\| `([a-z-]+)` \| (error|warning|info) \| (.+?)(?: \(rule (V\d+) of the reference deployer\))? \|")


def test_the_page_lists_every_check_with_its_severity_and_title() -> None:
    listed = {(name, severity, title, rule) for name, severity, title, rule in ROW.findall(PAGE.read_text())}
    assert listed == {(each.id, each.severity.value, each.title, each.rule) for each in CHECKS.values()}


def test_all_rules_of_the_reference_deployer_have_a_check() -> None:
    assert {each.rule for each in CHECKS.values() if each.rule} == {f"V{number}" for number in range(1, 11)}


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda each: each.id)
def test_a_check_says_what_is_wrong_why_it_matters_and_what_to_do(check: Check) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", check.id)
    assert check.title[0].isupper()
    assert not check.title.endswith(".")
    assert check.why.endswith(".")
    assert check.fix
    assert not check.fix.endswith(".")


def test_the_walk_names_checks_that_exist() -> None:
    assert {each for _, ids in walk.STEPS for each in ids} <= set(CHECKS)


def test_of_nothing_nothing_but_missing_things_is_said() -> None:
    """No check raises where everything is empty."""
    found = diagnosis.diagnose(Observed())
    assert {each.check for each in found.findings} == {"no-nodes", "crd-missing", "api-server-version-unknown"}


def test_what_could_not_be_read_skips_every_check_that_needs_it() -> None:
    needed = {each for check in CHECKS.values() for each in check.needs}
    found = diagnosis.diagnose(Observed(unread=dict.fromkeys(needed, "not allowed")))
    assert set(found.judged) == {each.id for each in CHECKS.values() if not each.needs}
    assert {each.check for each in found.findings} == {"not-readable"}


def test_severities_ascend_as_their_ranks_do() -> None:
    error = next(each for each in CHECKS.values() if each.severity is Severity.ERROR)
    finding = diagnosis.Finding(check=error.id, severity=Severity.WARNING, title="", seen="", where=(), why="", fix="")
    found = diagnosis.Diagnosis(findings=(finding,), judged=(), skipped={}, nodes=0)
    assert found.has(Severity.WARNING)
    assert not found.has(Severity.ERROR)
    assert structs.replace(found, findings=(structs.replace(finding, severity=Severity.ERROR),)).has(Severity.WARNING)
