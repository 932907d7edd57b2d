"""Judges recorded cases of suites: equal, different on purpose, not applicable, or a mismatch.

`numalign oracle replay` calls it. A deliberate difference needs a rule on the input and an entry in the compatibility
page. A case that cannot be answered is a mismatch: no case is skipped."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, structs

from numalign.oracle import recordedsuites
from numalign.oracle.casefiles import Recorded
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin.suites.suite import Deliberate, Suite


class Outcome(StrEnum):
    EQUAL = "equal"
    DELIBERATE = "deliberate"
    MISMATCH = "mismatch"
    NOT_APPLICABLE = "not applicable"


class Judged(Struct, frozen=True):
    """One case and its outcome; `why` and `anchor` explain a deliberate difference or a suite that does not apply."""

    recorded: Recorded
    outcome: Outcome
    differences: tuple[Difference, ...] = ()
    why: str = ""
    anchor: str = ""


class SuiteTally(Struct, frozen=True):
    equal: int = 0
    deliberate: int = 0
    mismatch: int = 0
    not_applicable: int = 0
    notes: tuple[str, ...] = ()
    """Entries of the compatibility page, and why the suite does not apply."""

    def plus(self, judged: Judged) -> SuiteTally:
        heap = judged.outcome.name.lower()
        note = judged.anchor or judged.why
        notes = self.notes if not note or note in self.notes else (*self.notes, note)
        return structs.replace(self, **{heap: getattr(self, heap) + 1}, notes=notes)


class SuiteReport(Struct, frozen=True):
    """Counts by suite, in the order of the files, and every mismatch."""

    suites: dict[str, SuiteTally]
    mismatches: tuple[Judged, ...]

    @property
    def cases(self) -> int:
        tallies = self.suites.values()
        return sum(each.equal + each.deliberate + each.mismatch + each.not_applicable for each in tallies)


def judge(recorded: Recorded) -> Judged:
    if recorded.suite in recordedsuites.NOT_APPLICABLE:
        return Judged(recorded, Outcome.NOT_APPLICABLE, why=recordedsuites.NOT_APPLICABLE[recorded.suite])
    suite = recordedsuites.SUITES.get(recorded.suite)
    if suite is None:
        return Judged(recorded, Outcome.MISMATCH, (Difference("suite", answered="unknown suite"),))
    differences = _differences(suite, recorded)
    if not differences:
        return Judged(recorded, Outcome.EQUAL)
    intended = next((each for each in suite.deliberate if _is_intended(each, recorded)), None)
    if intended is None:
        return Judged(recorded, Outcome.MISMATCH, differences)
    return Judged(recorded, Outcome.DELIBERATE, differences, intended.reason, intended.anchor)


# A case may be any JSON value. Any exception counts as a missing answer.
def _differences(suite: Suite, recorded: Recorded) -> tuple[Difference, ...]:
    try:
        return tuple(suite.compare(recorded.case["expect"], suite.answer(recorded.case)))
    except Exception as problem:
        return (Difference("", answered=f"no answer: {type(problem).__name__}: {problem}"),)


def _is_intended(deliberate: Deliberate, recorded: Recorded) -> bool:
    try:
        return deliberate.applies(recorded.case["input"]) and deliberate.shows(recorded.case)
    except Exception:
        return False


def summed(judged: Iterable[Judged]) -> SuiteReport:
    tallies, mismatches = dict[str, SuiteTally](), list[Judged]()
    for each in judged:
        name = each.recorded.suite
        tallies[name] = tallies.get(name, SuiteTally()).plus(each)
        if each.outcome is Outcome.MISMATCH:
            mismatches.append(each)
    return SuiteReport(tallies, tuple(mismatches))
