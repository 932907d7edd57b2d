"""Replays recorded cases of the scheduler plugin, of Koordinator's scheduler and of the topology publishers.

`numalign oracle replay` calls `load`, which returns None for a file of another kind (kubelet vectors), and `judge`. A
file holds one document with `cases` and what they share, or one case per line. Each case names its suite. No case is
skipped: an unknown suite is a mismatch, and a suite that does not apply to numalign says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.oracle import koordinatordirect, koordinatormerge
from numalign.oracle.harness import files, suite
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.harness.suite import Outcome, Suite, SuiteVerdict
from numalign.oracle.plugin.suites import caches, filters, formats, numasets, scores, settings
from numalign.oracle.publishers import cases as publishers
from numalign.oracle.publishers import reports, tables

MODULES = (filters, scores, numasets, settings, caches, formats, koordinatormerge, koordinatordirect)

SUITES: dict[str, Suite] = {each.name: each for module in MODULES for each in module.SUITES} | publishers.SUITES

NOT_APPLICABLE: dict[str, str] = {
    "stringify_resource_list": "renders log lines of the plugin, which we do not write",
    "has_exclusive_resources": "a flag beside a list of containers; here the list alone says it",
    **reports.NOT_APPLICABLE,
}
"""Suites that do not apply, and why."""


class RecordedCase(Struct, frozen=True):
    """One recorded case, its place in the file, and its suite."""

    where: str
    suite: str
    id: str
    case: Case


def load(path: Path) -> list[RecordedCase] | None:
    """The cases of the file, or None if the file is of another kind."""
    values = iter(files.values(path))
    found = next(values, None)
    if found is None:
        return None
    match found.value:
        case document if tables.recognised(document):
            return _some(_of_publishers(found), found.where)
        case {"cases": list(cases), **shared}:
            fixtures = shared.get("fixtures", {})
            placed = ((f"{found.where}, case {place}", case) for place, case in enumerate(cases, start=1))
            return _some([_recorded(case, where, fixtures) for where, case in placed], f"{found.where}, cases")
        case {"input": _, "expect": _}:
            return [_recorded(each.value, each.where, {}) for each in (found, *values)]
    return None


def _of_publishers(found: RecordedValue) -> list[RecordedCase]:
    return [RecordedCase(f"{found.where}, {name}", name, id, case) for name, id, case in tables.rows(found)]


def _some(cases: list[RecordedCase], where: str) -> list[RecordedCase]:
    if not cases:
        raise BadObject(files.KIND, where, "", "holds no case; give a file with recorded cases")
    return cases


def _recorded(case: Any, where: str, fixtures: Any) -> RecordedCase:
    if not isinstance(case, Mapping):
        raise BadObject(files.KIND, where, "", f"is {errors.echo(case)}; a case is a JSON object")
    for field in ("id", "input", "expect"):
        if field not in case:
            raise BadObject(files.KIND, where, field, "is missing; the case cannot be replayed without it")
    suite = case.get("suite", case.get("group"))
    if not isinstance(suite, str):
        raise BadObject(files.KIND, where, "suite", "is missing; it says what the case was recorded from")
    return RecordedCase(where, suite, str(case["id"]), {**case, "fixtures": fixtures})


class CheckedCase(SuiteVerdict, frozen=True, kw_only=True):
    """A recorded case with its verdict."""

    recorded: RecordedCase


class SuiteTally(Struct, frozen=True):
    equal: int = 0
    deliberate: int = 0
    mismatch: int = 0
    not_applicable: int = 0
    notes: tuple[str, ...] = ()
    """Entries of the compatibility page, and why the suite does not apply."""

    def plus(self, judged: CheckedCase) -> SuiteTally:
        heap = judged.outcome.name.lower()
        note = judged.anchor or judged.why
        notes = self.notes if not note or note in self.notes else (*self.notes, note)
        return structs.replace(self, **{heap: getattr(self, heap) + 1}, notes=notes)


class SuiteReport(Struct, frozen=True):
    """Counts by suite, in the order of the files, and every mismatch."""

    suites: dict[str, SuiteTally]
    mismatches: tuple[CheckedCase, ...]

    @property
    def cases(self) -> int:
        tallies = self.suites.values()
        return sum(each.equal + each.deliberate + each.mismatch + each.not_applicable for each in tallies)


def judge(recorded: RecordedCase) -> CheckedCase:
    return CheckedCase(recorded=recorded, **structs.asdict(_verdict(recorded)))


def _verdict(recorded: RecordedCase) -> SuiteVerdict:
    if recorded.suite in NOT_APPLICABLE:
        return SuiteVerdict(Outcome.NOT_APPLICABLE, why=NOT_APPLICABLE[recorded.suite])
    if recorded.suite not in SUITES:
        return SuiteVerdict(Outcome.MISMATCH, (Difference("suite", answered="unknown suite"),))
    return suite.judged(SUITES[recorded.suite], recorded.case)


def summed(judged: Iterable[CheckedCase]) -> SuiteReport:
    tallies, mismatches = dict[str, SuiteTally](), list[CheckedCase]()
    for each in judged:
        name = each.recorded.suite
        tallies[name] = tallies.get(name, SuiteTally()).plus(each)
        if each.outcome is Outcome.MISMATCH:
            mismatches.append(each)
    return SuiteReport(tallies, tuple(mismatches))
