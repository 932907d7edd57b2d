"""Judges recorded cases of suites: equal, different on purpose, not applicable, or a mismatch.

`numalign oracle replay` calls it. A deliberate difference needs a rule on the input and an entry in the compatibility
page. A case that cannot be answered is a mismatch: no case is skipped."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from numalign.oracle import recordedsuites
from numalign.oracle.casefiles import Recorded
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin.suites import suite
from numalign.oracle.plugin.suites.suite import Outcome, SuiteVerdict


class CheckedCase(SuiteVerdict, frozen=True, kw_only=True):
    """A recorded case with its verdict."""

    recorded: Recorded


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


def judge(recorded: Recorded) -> CheckedCase:
    return CheckedCase(recorded=recorded, **structs.asdict(_verdict(recorded)))


def _verdict(recorded: Recorded) -> SuiteVerdict:
    if recorded.suite in recordedsuites.NOT_APPLICABLE:
        return SuiteVerdict(Outcome.NOT_APPLICABLE, why=recordedsuites.NOT_APPLICABLE[recorded.suite])
    if recorded.suite not in recordedsuites.SUITES:
        return SuiteVerdict(Outcome.MISMATCH, (Difference("suite", answered="unknown suite"),))
    return suite.judged(recordedsuites.SUITES[recorded.suite], recorded.case)


def summed(judged: Iterable[CheckedCase]) -> SuiteReport:
    tallies, mismatches = dict[str, SuiteTally](), list[CheckedCase]()
    for each in judged:
        name = each.recorded.suite
        tallies[name] = tallies.get(name, SuiteTally()).plus(each)
        if each.outcome is Outcome.MISMATCH:
            mismatches.append(each)
    return SuiteReport(tallies, tuple(mismatches))
