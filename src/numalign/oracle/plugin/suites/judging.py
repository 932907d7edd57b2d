"""Putting recorded plugin cases to our modules, and sorting what comes out into four heaps.

A case is equal, or differs on purpose (a rule on its input says so, and the compatibility page why), or has no
counterpart, or is a mismatch. A case that cannot be answered is a mismatch like any other: nothing is skipped."""

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
    """One case and its heap; `why` and `anchor` for those that differ on purpose or have no counterpart."""

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
    """Entries of the compatibility page, and why the suite has no counterpart."""

    def plus(self, judged: Judged) -> SuiteTally:
        heap = judged.outcome.name.lower()
        note = judged.anchor or judged.why
        notes = self.notes if not note or note in self.notes else (*self.notes, note)
        return structs.replace(self, **{heap: getattr(self, heap) + 1}, notes=notes)


class SuiteReport(Struct, frozen=True):
    """By suite, in the order of the files; every mismatch."""

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
        return Judged(recorded, Outcome.MISMATCH, (Difference("suite", answered="nobody here knows this suite"),))
    differences = _differences(suite, recorded)
    if not differences:
        return Judged(recorded, Outcome.EQUAL)
    intended = next((each for each in suite.deliberate if _is_intended(each, recorded)), None)
    if intended is None:
        return Judged(recorded, Outcome.MISMATCH, differences)
    return Judged(recorded, Outcome.DELIBERATE, differences, intended.reason, intended.anchor)


# A case may be anything that JSON can spell; whatever goes wrong while it is looked at, it has no answer.
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
